use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use leasehold_core::{Clock, Instant, Mutex, StoreError, StoreErrorKind, within};
use redis::{Client, ConnectionInfo, RedisError};
use tokio::{
    select,
    sync::{Notify, mpsc},
};

use super::{
    ballot::{FoundMaster, MasterVerdict, decide},
    member::{Sentinel, limit, with_tcp_settings},
};
use crate::{
    address::SentinelGroup,
    classify::{NO_REDIS, classify_dial, is_login, is_of_login},
    config::RedisConfig,
    durations::SENTINEL_REFRESHES,
    endpoint::Endpoint,
    liveness::{Epoch, Epochs},
    not_dialed::{NotDialed, SHUT},
    role::{NODE, SENTINEL},
    tls,
};

/// What to do about a name that Sentinels do not know.
pub const UNKNOWN_NAME: &str =
    "write the name that `sentinel monitor` has, behind the hosts of the address";
/// What to do about Sentinels that name different masters.
pub const DISAGREEING: &str = "have all Sentinels watch the same master (SENTINEL MONITOR); in a failover, wait until they agree";

/// How the error begins if no Sentinel can be reached.
const NO_ANSWER: &str = "no Sentinel answers";

/// The Sentinels of one master.
pub(crate) struct Sentinels {
    members: Vec<Arc<Sentinel>>,
    name: String,
    /// How to connect to a master, but for its endpoint.
    template: ConnectionInfo,
    config: RedisConfig,
    clock: Arc<dyn Clock>,
    master: Mutex<LastMaster>,
    /// A new one begins with each master.
    pub(crate) epochs: Epochs,
    /// How often the Sentinels were asked.
    refreshes: AtomicU64,
    /// When they were asked last.
    refreshed_at: Mutex<Option<Instant>>,
    hint: Arc<Notify>,
}

/// The last known master.
#[derive(Default)]
struct LastMaster {
    found: Option<FoundMaster>,
    client: Option<Client>,
}

impl Sentinels {
    pub(crate) fn new(
        config: &RedisConfig,
        group: &SentinelGroup,
        template: ConnectionInfo,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let hint = Arc::new(Notify::new());
        let member = |info: &ConnectionInfo| {
            let info = with_tcp_settings(info, &template);
            Arc::new(Sentinel::new(config.clone(), Arc::clone(&clock), info, Arc::clone(&hint)))
        };
        let members = group.sentinels.iter().map(member).collect();
        Self {
            members,
            name: group.master.clone(),
            template,
            config: config.clone(),
            clock,
            refreshes: AtomicU64::new(0),
            refreshed_at: Mutex::default(),
            master: Mutex::default(),
            epochs: Epochs::default(),
            hint,
        }
    }

    /// Where the master of an epoch is, unless another one is known by now.
    pub(crate) fn master(&self, epoch: Epoch) -> Option<String> {
        let master = self.master.lock();
        let found = master.found.as_ref().filter(|_| self.epochs.now() == epoch);
        found.map(|found| found.endpoint.to_string())
    }

    /// Whether nobody has asked the Sentinels for a while.
    pub(crate) fn is_unwatched(&self) -> bool {
        let refreshed_at = *self.refreshed_at.lock();
        refreshed_at.is_none_or(|at| self.clock.now() > at + 3 * *SENTINEL_REFRESHES.end())
    }

    /// The client of the master that the Sentinels have named last.
    pub(crate) fn known(&self) -> Option<(Client, Epoch)> {
        let master = self.master.lock();
        master.client.clone().map(|client| (client, self.epochs.now()))
    }

    /// The client of the present master, found by asking the Sentinels.
    pub(crate) async fn client(&self, deadline: Instant) -> Result<(Client, Epoch), StoreError> {
        let verdict = within(&*self.clock, deadline, self.refresh()).await;
        verdict.unwrap_or_else(|| Err(open_question(0, self.members.len())))
    }

    /// Asks all Sentinels side by side, until enough have answered.
    async fn refresh(&self) -> Result<(Client, Epoch), StoreError> {
        let refresh = self.refreshes.fetch_add(1, Ordering::AcqRel);
        *self.refreshed_at.lock() = Some(self.clock.now());
        let listed = self.members.len();
        let until = self.clock.now() + limit(&self.config);
        let (sender, mut receiver) = mpsc::channel(listed);
        for member in &self.members {
            let (member, name) = (Arc::clone(member), self.name.clone());
            let (clock, sender) = (Arc::clone(&self.clock), sender.clone());
            // It goes on to its limit when enough others have answered: a dropped question would
            // cost the connection.
            drop(tokio::spawn(async move {
                if let Some(answer) = within(&*clock, until, member.ask(&name)).await {
                    let _ = sender.send((member.place(), answer)).await;
                }
            }));
        }
        drop(sender);
        let (mut answers, mut failed) = (Vec::new(), Vec::new());
        while let Some((place, asked)) = receiver.recv().await {
            match asked {
                Ok(answer) => answers.push(answer),
                Err(error) => failed.push((place, error)),
            }
            match decide(&answers, listed, None) {
                MasterVerdict::Named(endpoint) => return self.settle(refresh, &endpoint),
                MasterVerdict::Unknown => return Err(self.unknown()),
                MasterVerdict::Open => {}
            }
        }
        // Only now, when no other answer will come; another refresh may have found another master.
        let last = self.master.lock().found.as_ref().map(|found| found.endpoint.clone());
        match decide(&answers, listed, last.as_ref()) {
            MasterVerdict::Named(endpoint) => self.settle(refresh, &endpoint),
            _ => Err(self.undecided(answers.len(), &failed, last.is_some())),
        }
    }

    /// Why the Sentinels name no master, of those that answered or failed.
    fn undecided(
        &self,
        answered: usize,
        failed: &[(String, RedisError)],
        is_master_known: bool,
    ) -> StoreError {
        let listed = self.members.len();
        let told: Vec<_> = failed
            .iter()
            .map(|(place, error)| (place, unreachable(&self.config, error, is_master_known)))
            .collect();
        let (lasting, passing): (Vec<_>, Vec<_>) =
            told.iter().partition(|(_, error)| error.kind() == StoreErrorKind::Config);
        // Whatever all others say, they are too few.
        if let Some((_, first)) = lasting.first()
            && (listed - lasting.len()) * 2 <= listed
        {
            let why = if answered == 0 { first.what() } else { alone(first) };
            let what = with_places(why, first, &lasting);
            return StoreError::new(first.kind(), what, first.remedy().to_owned());
        }
        // One that is out of reach may be back soon, whatever the others say.
        match (passing.first(), lasting.first()) {
            _ if answered > 0 => open_question(answered, listed),
            (Some((_, one)), Some((_, other))) if !one.is_ours() => {
                let (what, other_what) = (with_places(one.what(), one, &passing), alone(other));
                let what = format!("{what}; and {}", with_places(other_what, other, &lasting));
                let remedy = format!("{}; {}", one.remedy(), other.remedy());
                StoreError::new(one.kind(), what, remedy)
            }
            (Some((_, error)), _) | (None, Some((_, error))) => error.clone(),
            (None, None) => open_question(answered, listed),
        }
    }

    /// Notes where a refresh has found the master, unless a later one has found it elsewhere.
    fn settle(&self, refresh: u64, endpoint: &Endpoint) -> Result<(Client, Epoch), StoreError> {
        let mut master = self.master.lock();
        let (mut found, old) = (master.found.clone(), master.found.clone());
        let is_other = FoundMaster::note(&mut found, refresh, endpoint);
        if let Some(client) = master.client.clone().filter(|_| !is_other) {
            master.found = found;
            return Ok((client, self.epochs.now()));
        }
        let client = endpoint.info(&self.template).and_then(Client::open);
        let client = client.map_err(|error| classify_dial(&error))?;
        *master = LastMaster { found, client: Some(client.clone()) };
        let epoch = self.epochs.advance();
        drop(master);
        let name = &self.name;
        match old {
            None => tracing::debug!(master = %endpoint, name, "the Sentinels named the master"),
            Some(FoundMaster { endpoint: old, .. }) => {
                tracing::warn!(master = %endpoint, %old, name, "another server is the master now");
            }
        }
        Ok((client, epoch))
    }

    /// Asks the Sentinels from time to time, and when they tell of a switch.
    pub(crate) async fn watch(&self) {
        let clock = &*self.clock;
        loop {
            // Hints are not followed faster: a Sentinel may end every connection.
            clock.sleep_until(clock.now() + *SENTINEL_REFRESHES.start()).await;
            select! {
                biased;
                () = self.hint.notified() => {}
                () = clock.sleep_until(clock.now() + *SENTINEL_REFRESHES.end()) => {}
            }
            if let Err(error) = self.refresh().await {
                tracing::debug!(%error, "the Sentinels did not tell where the master is");
            }
        }
    }

    fn unknown(&self) -> StoreError {
        // Where there was a master, the Sentinels are being set up anew.
        let was_known = self.master.lock().found.is_some();
        let kind = if was_known { StoreErrorKind::Definite } else { StoreErrorKind::Config };
        let what = format!("the Sentinels know no master named `{}`", self.name);
        StoreError::new(kind, what, UNKNOWN_NAME).as_answer()
    }
}

/// Why one Sentinel did not answer, in a sentence that names it, and what to do.
pub fn unreachable_one(config: &RedisConfig, error: &RedisError) -> StoreError {
    let failed = unreachable(config, error, false);
    StoreError::new(failed.kind(), alone(&failed).to_owned(), failed.remedy().to_owned())
}

/// What is said of an error, and the Sentinels of which it is told alike.
fn with_places(why: &str, of: &StoreError, told: &[&(&String, StoreError)]) -> String {
    let alike = told.iter().filter(|(_, error)| error.what() == of.what());
    let places: Vec<_> = alike.map(|(place, _)| place.as_str()).collect();
    format!("{why} (at {})", places.join(", "))
}

/// Why one Sentinel did not answer: the same of all has a word before it.
fn alone(failed: &StoreError) -> &str {
    let what = failed.what();
    what.strip_prefix(NO_ANSWER).and_then(|why| why.strip_prefix(": ")).unwrap_or(what)
}

/// Why no Sentinel answered, or one. Where a master is known, Sentinels have answered before.
fn unreachable(config: &RedisConfig, error: &RedisError, is_master_known: bool) -> StoreError {
    let of_tls = tls::told(config.tls.given(), false, error);
    let failed = of_tls.unwrap_or_else(|| NotDialed::from(error.clone()));
    let failed = failed.for_now_if(is_master_known).error;
    let no_sentinel = failed.what().contains("unknown command");
    let (what, remedy) = if is_login(error) {
        ("Sentinels refuse the login", "write their login as ?sentinel_user=…&sentinel_pass=…")
    } else if no_sentinel {
        ("what answers is no Sentinel", "write the ports of the Sentinels, as a rule 26379")
    } else {
        (NO_ANSWER, failed.remedy())
    };
    // The words of such a server may repeat what it was sent.
    let what = if no_sentinel { what.to_owned() } else { format!("{what}: {}", failed.what()) };
    let told = StoreError::new(failed.kind(), what, remedy.to_owned());
    if failed.is_ours() { told.ours() } else { told }
}

/// Who names the address of a master.
pub const NAMED_MASTER: &str = "which the Sentinels name as the master";

/// The same error of a connection to the master that Sentinels name: one word of the address is for both, and
/// another server may be there.
pub fn of_named_master(error: StoreError) -> StoreError {
    let remedy = if error.kind() == StoreErrorKind::Config && tls::is_foreign(&error) {
        BOTH_BY_TLS.into()
    } else if error.remedy() == SHUT {
        SHUT_OR_TLS.into()
    } else if is_of_login(&error) {
        error.remedy().to_owned()
    } else if error.kind() == StoreErrorKind::Config
        && [NO_REDIS, NODE, SENTINEL].contains(&error.what())
    {
        return error.with_remedy(MONITOR);
    } else {
        return error;
    };
    error.with_remedy(format!("{remedy}; or, if another server is the master, {MONITOR}"))
}

const MONITOR: &str = "have each Sentinel watch the right one: SENTINEL REMOVE NAME, then SENTINEL MONITOR NAME HOST PORT QUORUM";

const BOTH_BY_TLS: &str = "Sentinels and servers are both reached by TLS, or neither: set `tls-port` and `tls-replication yes` at \
     both, so that the Sentinels name ports that speak TLS; without TLS, begin the address with redis";
const SHUT_OR_TLS: &str = "it may have reached its maxclients, or speak TLS alone: Sentinels and servers are both reached by TLS, or \
     neither; set `tls-port` and `tls-replication yes` at the Sentinels, too, and begin the address with rediss, or \
     have the servers listen without TLS";

fn open_question(answered: usize, listed: usize) -> StoreError {
    let what = format!(
        "too few Sentinels name one master: {answered} of {listed} answered, and not most of all say the same"
    );
    let remedy = if answered * 2 > listed { DISAGREEING } else { NO_MAJORITY };
    StoreError::new(StoreErrorKind::Definite, what, remedy)
}

const NO_MAJORITY: &str = "check that the Sentinels run, and that the address lists them";

#[cfg(test)]
mod tests {
    use leasehold_core::SystemClock;

    use super::*;

    #[test]
    fn what_answers_in_the_place_of_sentinels_lasts_unless_they_have_answered_before() {
        let config = RedisConfig::new("redis+sentinel://a,b,c/m").unwrap();
        let error = RedisError::from((redis::ErrorKind::Parse, "Parse error at 1"));
        for (is_master_known, kind) in
            [(false, StoreErrorKind::Config), (true, StoreErrorKind::Definite)]
        {
            assert_eq!(unreachable(&config, &error, is_master_known).kind(), kind);
        }
    }

    #[test]
    fn a_refresh_that_began_earlier_does_not_bring_an_older_master_back() {
        let config = RedisConfig::new("redis+sentinel://a,b,c/m").unwrap();
        let info = config.address.info().clone();
        let sentinels = config.address.sentinels().unwrap();
        let group = Sentinels::new(&config, sentinels, info, Arc::new(SystemClock));
        let at = |port| Endpoint { host: "h".into(), port };
        let (_, first) = group.settle(1, &at(1)).unwrap();
        let (_, second) = group.settle(3, &at(2)).unwrap();
        assert!(first < second && group.epochs.now() == second);
        let (client, epoch) = group.settle(2, &at(1)).unwrap();
        assert_eq!((epoch, group.epochs.now()), (second, second));
        assert_eq!(client.get_connection_info().addr().to_string(), "h:2");
        let (_, third) = group.settle(4, &at(1)).unwrap();
        assert!(second < third);
    }
}
