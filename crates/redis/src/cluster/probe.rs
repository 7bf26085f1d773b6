use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Clock, Instant, Mutex, StoreError, StoreErrorKind, within};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection,
};
use tokio::{sync, task::JoinSet};

use super::{
    choice::{Choice, Probe, choose, is_enough},
    view::{ONE_EACH, View, shared, unknown_node},
};
use crate::{
    classify::{NOT_THERE, classify_dial, of_scheme},
    config::RedisConfig,
    durations::{NODE_REMEMBERED, PATIENCE},
    endpoint::Endpoint,
    login::Login,
    needed::not_dialed,
    not_dialed::NotDialed,
};

/// How many nodes are asked at once, and how many while the same trouble lasts.
const MOST_ASKED: usize = 8;
const FEW_ASKED: usize = 2;

/// Asks nodes of a Cluster for their view of it.
pub(super) struct Prober {
    config: RedisConfig,
    login: Login,
    template: ConnectionInfo,
    clock: Arc<dyn Clock>,
    /// The node that answered last.
    kept: sync::Mutex<Option<AskedNode>>,
    /// How many probes in a row found no view to believe.
    in_vain: AtomicU32,
    /// Since when no node of the known Cluster has answered.
    silent_since: Mutex<Option<Instant>>,
    impostors: Mutex<Impostors>,
}

/// What is known before a probe.
#[derive(Clone, Copy)]
pub(super) struct KnownCluster<'a> {
    pub(super) view: Option<&'a View>,
    /// For how long no other Cluster is believed when the known nodes do not answer.
    pub(super) longest: Duration,
}

/// Whose view a probe takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// That of the node that answered last, or of the first of several that takes commands.
    First,
    /// The best of several nodes.
    All,
    /// The best of a few nodes, other ones at each probe.
    Few,
}

/// A node that has answered.
struct AskedNode {
    endpoint: Endpoint,
    connection: MultiplexedConnection,
}

impl Prober {
    pub(super) fn new(config: &RedisConfig, clock: Arc<dyn Clock>) -> Self {
        let (login, template) = Login::split_off(config);
        Self {
            config: config.clone(),
            login,
            template,
            clock,
            kept: sync::Mutex::default(),
            in_vain: AtomicU32::new(0),
            silent_since: Mutex::default(),
            impostors: Mutex::default(),
        }
    }

    /// The view of the node that answered last, if it is not behind a known one. Otherwise, and
    /// where several are to be heard, the one that is [chosen](choose) of theirs.
    ///
    /// It fails when none is to be believed. With the view comes who told it.
    pub(super) async fn probe(
        self: &Arc<Self>,
        endpoints: Vec<Endpoint>,
        known: KnownCluster<'_>,
        wanted: Wanted,
    ) -> Result<(View, Endpoint), StoreError> {
        let is_newest = |view: &View| {
            known.view.is_none_or(|known| view.is_of(known) && !known.is_better_than(view))
        };
        let asked = self.kept.lock().await.take();
        if let Some(AskedNode { endpoint, mut connection }) =
            asked.filter(|_| wanted == Wanted::First)
        {
            let until = self.clock.now() + PATIENCE;
            let viewing = view_of(&mut connection, &endpoint);
            if let Some(Ok(view)) = within(&*self.clock, until, viewing).await
                && is_newest(&view)
            {
                let teller = endpoint.clone();
                *self.kept.lock().await = Some(AskedNode { endpoint, connection });
                self.found();
                return Ok((view, teller));
            }
        }
        let (view, asked) = self.ask_several(endpoints, known, wanted).await?;
        let teller = asked.endpoint.clone();
        *self.kept.lock().await = Some(asked);
        Ok((view, teller))
    }

    async fn ask_several(
        self: &Arc<Self>,
        mut endpoints: Vec<Endpoint>,
        known: KnownCluster<'_>,
        wanted: Wanted,
    ) -> Result<(View, AskedNode), StoreError> {
        let clock = &*self.clock;
        let mut until = clock.now() + self.config.connect_timeout;
        let seeds = self.config.address.cluster().unwrap_or_default();
        let is_silent = known.view.is_some() && self.is_silent(known.longest);
        let mut most = if wanted == Wanted::Few { FEW_ASKED } else { MOST_ASKED };
        if is_silent {
            // All of these have to agree.
            endpoints.sort_by_key(|endpoint| !seeds.contains(endpoint));
            most += seeds.len();
        }
        let mut asking = JoinSet::new();
        for endpoint in endpoints.into_iter().take(most) {
            let prober = Arc::clone(self);
            asking.spawn(async move { prober.ask(endpoint).await });
        }
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let probe = Probe { seeds, known: known.view, asked: asking.len(), in_vain, is_silent };
        let (mut told, mut failed) = (Vec::new(), None::<StoreError>);
        let mut connections = Vec::new();
        while let Some(Some(asked)) = within(clock, until, asking.join_next()).await {
            let (view, asked) = match asked {
                Ok(Ok(answer)) => answer,
                Ok(Err(not_asked)) => {
                    let error = not_asked.for_now_if(known.view.is_some()).error;
                    let is_tls = matches!(self.template.addr(), ConnectionAddr::TcpTls { .. });
                    let error = of_scheme(is_tls, error);
                    // One that is out of reach may be back soon, whatever the others say.
                    if failed.as_ref().is_none_or(|_| error.kind().is_transient()) {
                        failed = Some(error);
                    }
                    continue;
                }
                Err(_) => continue,
            };
            self.warn_of_impostor(&asked.endpoint, &view, known.view);
            told.push((asked.endpoint.clone(), view));
            connections.push(asked);
            if wanted == Wanted::First && is_enough(&told, probe) {
                break;
            }
            // Who knows no Cluster hears all addresses, if they do not lead to one.
            if known.view.is_some() || is_enough(&told, probe) {
                until = until.min(clock.now() + PATIENCE);
            }
        }
        let choice = choose(&told, probe);
        if let Choice::Take(at) | Choice::Anew(at) = choice {
            let (view, asked) = (told.swap_remove(at).1, connections.swap_remove(at));
            if let Choice::Anew(_) = choice {
                tracing::warn!(
                    epoch = view.epoch,
                    nodes = view.nodes.len(),
                    "the Cluster was made anew: none of its known nodes has answered for the longest ttl"
                );
            }
            self.found();
            return Ok((view, asked));
        }
        if told.is_empty() {
            return Err(failed.unwrap_or_else(|| NotDialed::in_time().error));
        }
        self.in_vain.fetch_add(1, Ordering::Relaxed);
        let is_ours =
            |(_, view): &(Endpoint, View)| known.view.is_some_and(|known| view.is_of(known));
        match told.iter().filter(|one| is_ours(one)).count() {
            _ if choice == Choice::Split => Err(split()),
            0 => {
                self.silent_since.lock().get_or_insert_with(|| clock.now());
                Err(unknown_node())
            }
            ours => {
                *self.silent_since.lock() = None;
                Err(outdated(ours, probe.asked))
            }
        }
    }

    /// A probe found a view to believe.
    fn found(&self) {
        self.in_vain.store(0, Ordering::Relaxed);
        *self.silent_since.lock() = None;
    }

    /// Whether no node of the known Cluster has answered for so long.
    fn is_silent(&self, long: Duration) -> bool {
        let since = *self.silent_since.lock();
        since.is_some_and(|since| self.clock.now() >= since + long)
    }

    /// A node of another Cluster is left alone.
    fn warn_of_impostor(&self, endpoint: &Endpoint, view: &View, known: Option<&View>) {
        let is_other = known.is_some_and(|known| !view.is_of(known)) && !view.nodes.is_empty();
        if is_other && self.impostors.lock().is_news(endpoint, self.clock.now()) {
            tracing::warn!(
                node = %endpoint,
                epoch = view.epoch,
                "a node of another Cluster has an address of this one, and is not asked for locks"
            );
        }
    }

    async fn ask(&self, endpoint: Endpoint) -> Result<(View, AskedNode), NotDialed> {
        let deadline = self.clock.now() + self.config.connect_timeout;
        let client = endpoint.info(&self.template).and_then(Client::open);
        let client = client.map_err(|error| classify_dial(&error))?;
        let client = self.login.client(&client, &*self.clock, deadline).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.config.connect_timeout))
            .set_response_timeout(None);
        let asked = Mutex::new(None);
        let mut connection = self.login.connect(&client, &config, &*self.clock, &asked).await?;
        self.login.set_up(&mut connection).await?;
        let view = view_of(&mut connection, &endpoint).await?;
        Ok((view, AskedNode { endpoint, connection }))
    }
}

async fn view_of(
    connection: &mut MultiplexedConnection,
    endpoint: &Endpoint,
) -> Result<View, NotDialed> {
    let mut asked = redis::pipe();
    asked.cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS");
    let asked: Result<(Value, Value), RedisError> = asked.query_async(connection).await;
    let (info, slots) = asked.map_err(|error| no_view(first_of(error)))?;
    if let Some(what) = shared(&slots, endpoint, true) {
        return Err(StoreError::new(StoreErrorKind::Config, what, ONE_EACH).as_answer().into());
    }
    View::read(&info, &slots, endpoint).ok_or_else(|| {
        let what = format!("the server at {endpoint} does not tell who owns the slots");
        StoreError::new(StoreErrorKind::Config, what, "use a server that imitates Redis fully")
            .as_answer()
            .into()
    })
}

/// Few nodes answered, and their views are older than the known one.
fn outdated(told: usize, asked: usize) -> StoreError {
    let what = format!(
        "{told} of {asked} nodes of the Cluster answered, and they know less than this process"
    );
    StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
}

/// Several Clusters answered, and none of them has most of the addresses.
fn split() -> StoreError {
    let what =
        "the addresses lead to nodes of different Clusters, and most of them to none of these";
    StoreError::new(StoreErrorKind::Definite, what, "write the addresses of nodes of one Cluster")
}

/// What the server said of the first command of a pipeline that it refused, in its own words.
fn first_of(error: RedisError) -> RedisError {
    let refused = error.clone().into_server_errors();
    let first = refused.and_then(|refused| Some(refused.first()?.1.clone()));
    first.map_or(error, RedisError::from)
}

fn no_view(error: RedisError) -> NotDialed {
    let words = error.to_string();
    let (what, remedy) = if words.contains("cluster support disabled") {
        ("the server is not a node of a Cluster", "write redis://host:port for a single server")
    } else if words.contains("unknown command") {
        (
            "what answers is not a node of a Cluster, or its command CLUSTER is renamed",
            "write the addresses of its nodes, or undo the `rename-command`",
        )
    } else {
        return not_dialed("CLUSTER", error);
    };
    StoreError::new(StoreErrorKind::Config, what, remedy).as_answer().into()
}

/// A master, and the slots that it owns.
pub struct ClusterMaster {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The slots that it owns.
    pub slots: Vec<RangeInclusive<u16>>,
    /// Which node has told its address; `None` for one that the user wrote.
    pub announced_to: Option<Arc<str>>,
}

/// Asks nodes of a Cluster for its masters.
///
/// # Errors
///
/// [`StoreError`] when no node tells of all masters.
///
/// # Cancel safety
///
/// Dropping the future ends the questions.
pub async fn masters(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
) -> Result<Vec<ClusterMaster>, StoreError> {
    let seeds = config.address.cluster().unwrap_or_default().to_vec();
    let nothing = KnownCluster { view: None, longest: Duration::ZERO };
    let probing = Arc::new(Prober::new(config, clock));
    let (view, teller) = probing.probe(seeds.clone(), nothing, Wanted::All).await?;
    let teller: Arc<str> = teller.to_string().into();
    let mut masters = BTreeMap::<Endpoint, Vec<_>>::new();
    for (slots, endpoint) in view.owners {
        masters.entry(endpoint).or_default().push(slots);
    }
    let master = |(endpoint, slots)| {
        let announced_to = (!seeds.contains(&endpoint)).then(|| Arc::clone(&teller));
        ClusterMaster { endpoint, slots, announced_to }
    };
    Ok(masters.into_iter().map(master).collect())
}

/// Nodes of other Clusters that were found, and when they were logged.
#[derive(Debug, Default)]
pub(super) struct Impostors(BTreeMap<Endpoint, Instant>);

impl Impostors {
    /// Whether the node at an endpoint is to be logged now.
    pub(super) fn is_news(&mut self, endpoint: &Endpoint, now: Instant) -> bool {
        self.0.retain(|_, told_at| now < *told_at + NODE_REMEMBERED);
        let is_news = !self.0.contains_key(endpoint);
        if is_news {
            self.0.insert(endpoint.clone(), now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_of_once_a_minute() {
        let mut impostors = Impostors::default();
        let at = |secs| Instant::at(Duration::from_secs(secs));
        let [one, other] = [1, 2].map(|port| Endpoint { host: "h".into(), port });
        assert!(impostors.is_news(&one, at(0)) && !impostors.is_news(&one, at(59)));
        assert!(impostors.is_news(&other, at(59)) && impostors.is_news(&one, at(60)));
        assert_eq!(impostors.0.len(), 2);
        impostors.is_news(&one, at(500));
        assert_eq!(impostors.0.len(), 1, "what is long past is forgotten");
    }
}
