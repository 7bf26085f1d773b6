use std::sync::{Arc, Weak};

use futures_util::future::{join, join_all};
use leasehold_core::{Clock, Instant, Mutex, StoreError, StoreErrorKind, within};
use redis::{Value, aio::MultiplexedConnection};

use super::{
    decode::text,
    liveness::{Epoch, Epochs},
    needed::not_dialed,
    not_dialed::NotDialed,
    role::hello,
};
use crate::durations::{FINDING_LASTS, PATIENCE};

/// Finds out whether an address leads to more than one master.
///
/// A proxy or a Kubernetes Service may spread connections over several masters that know nothing of
/// each other: each of them would grant every lock. So each new connection asks its server for the
/// id of its run (`INFO`). If the id is another one than before, the older connections are asked:
///
/// - None of them answers as a master. Then the server was restarted or replaced, and the older
///   connections are given up.
/// - One of them does. Then the address leads to two masters. Nothing is sent to either of them while
///   both answer as masters.
///
/// Where `INFO` is denied, nothing is known, and nothing is refused.
// ADR 0033
pub(super) struct OneMaster {
    clock: Arc<dyn Clock>,
    state: Mutex<OneMasterState>,
    /// A new one begins when all connections are given up.
    pub(super) epochs: Epochs,
}

#[derive(Default)]
struct OneMasterState {
    /// The connections that are in use, and some that were.
    known: Vec<Weak<Witness>>,
    apart: Option<Apart>,
}

/// Two masters at one address.
struct Apart {
    masters: [Arc<Witness>; 2],
    /// When both have answered as masters.
    at: Instant,
    error: StoreError,
}

/// A connection to a run of a server. Each user of the connection keeps it.
pub(super) struct Witness {
    pub(super) run: String,
    connection: MultiplexedConnection,
}

/// The result of admitting a connection: what its user keeps and its epoch, or why it is refused.
type Admission = Result<(Arc<Witness>, Epoch), StoreError>;

impl OneMaster {
    /// Nothing is known of the address yet.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default(), epochs: Epochs::default() }
    }

    /// The epoch of the next connection; the error as long as the address leads to two masters.
    pub(super) async fn next(&self, deadline: Instant) -> Result<Epoch, StoreError> {
        let clock = &*self.clock;
        let masters = match &self.state.lock().apart {
            None => None,
            Some(apart) if clock.now().saturating_since(apart.at) < FINDING_LASTS => {
                return Err(apart.error.clone());
            }
            Some(apart) => Some(apart.masters.clone()),
        };
        if let Some([one, other]) = masters {
            let until = patience(clock, deadline);
            let (one, other) =
                join(one.is_master(clock, until), other.is_master(clock, until)).await;
            let mut state = self.state.lock();
            if let Some(apart) = &mut state.apart {
                if one && other {
                    apart.at = clock.now();
                    return Err(apart.error.clone());
                }
                state.apart = None;
            }
        }
        Ok(self.epochs.now())
    }

    /// Admits a new connection, by the id of the run of its server. Returns what the user of the
    /// connection keeps, and the epoch of the connection.
    ///
    /// No await follows the last question: `dial` polls this before it checks whether the epoch has
    /// ended, so it gets this answer first.
    pub(super) async fn admit(
        &self,
        deadline: Instant,
        run: String,
        connection: MultiplexedConnection,
    ) -> Admission {
        let clock = &*self.clock;
        let witness = Arc::new(Witness { run, connection });
        let mut asked: Vec<(Arc<Witness>, bool)> = Vec::new();
        loop {
            let others = match self.judge(&witness, &asked) {
                Ok(outcome) => return outcome,
                Err(others) => others,
            };
            let until = patience(clock, deadline);
            let answers = join_all(others.iter().map(|other| other.is_master(clock, until))).await;
            asked.extend(others.into_iter().zip(answers));
        }
    }

    /// Admits a connection if all older ones to another run were asked; otherwise returns those to ask.
    fn judge(
        &self,
        new: &Arc<Witness>,
        asked: &[(Arc<Witness>, bool)],
    ) -> Result<Admission, Vec<Arc<Witness>>> {
        let mut state = self.state.lock();
        if let Some(apart) = &state.apart {
            return Ok(Err(apart.error.clone()));
        }
        let is_new =
            |other: &Arc<Witness>| !asked.iter().any(|(known, _)| Arc::ptr_eq(known, other));
        let known = state.known.iter().filter_map(Weak::upgrade);
        let others: Vec<_> = known.filter(|other| other.run != new.run && is_new(other)).collect();
        if !others.is_empty() {
            return Err(others);
        }
        if let Some((older, _)) = asked.iter().find(|(_, is_master)| *is_master) {
            let error = apart(&older.run, &new.run);
            tracing::error!(%error, "an address leads to two masters: nothing is sent to either");
            let masters = [Arc::clone(older), Arc::clone(new)];
            state.apart = Some(Apart { masters, at: self.clock.now(), error: error.clone() });
            self.give_up(&mut state);
            return Ok(Err(error));
        }
        if asked.is_empty() {
            state.known.retain(|known| known.strong_count() > 0);
        } else {
            // The server was replaced: connections to another run are stale.
            self.give_up(&mut state);
        }
        state.known.push(Arc::downgrade(new));
        Ok(Ok((Arc::clone(new), self.epochs.now())))
    }

    /// Gives up all connections that were admitted so far.
    fn give_up(&self, state: &mut OneMasterState) {
        state.known.clear();
        self.epochs.advance();
    }
}

/// The time by which older connections have to answer.
fn patience(clock: &dyn Clock, deadline: Instant) -> Instant {
    let now = clock.now();
    now + PATIENCE.min(deadline.saturating_since(now) / 2)
}

impl Witness {
    /// Whether the connection lives, and its server says that it is a master.
    async fn is_master(&self, clock: &dyn Clock, until: Instant) -> bool {
        let mut connection = self.connection.clone();
        let told = within(clock, until, hello(&mut connection)).await;
        told.is_some_and(|told| {
            told.is_ok_and(|told| told.get("role").and_then(text).as_deref() == Some("master"))
        })
    }
}

/// The id of the run of a server, if it tells one; an error if the connection ends.
pub(super) async fn run_of(
    connection: &mut MultiplexedConnection,
) -> Result<Option<String>, NotDialed> {
    let told = redis::cmd("INFO").arg("server").query_async::<Value>(connection).await;
    match told {
        Err(error) if error.is_connection_dropped() => Err(not_dialed("INFO", error)),
        told => Ok(told.ok().and_then(|told| run_in(&text(&told)?).map(str::to_owned))),
    }
}

/// The id of the run in what `INFO` tells.
pub fn run_in(told: &str) -> Option<&str> {
    told.lines().find_map(|line| line.strip_prefix("run_id:")).map(str::trim)
}

fn apart(one: &str, other: &str) -> StoreError {
    let what = format!(
        "the address leads to two masters that know nothing of each other (run_id {one} and {other}), \
         and each of them would grant every lock"
    );
    StoreError::new(StoreErrorKind::Config, what, ONE_ADDRESS).as_answer()
}

/// What to do about an address that leads to several masters.
pub const ONE_ADDRESS: &str = "give each master an address of its own, and use one of them; where servers \
     belong together, write redis+sentinel://, redis+cluster:// or redis+quorum://";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_is_a_line_of_info() {
        let told = "# Server\r\nredis_version:7.0.15\r\nrun_id:0123abc\r\ntcp_port:6379\r\n";
        assert_eq!(run_in(told), Some("0123abc"));
        assert_eq!(run_in("# Server\r\nredis_version:7.0.15\r\n"), None);
    }
}
