use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Mutex, QuorumSettings, StoreError, StoreErrorKind};
use leasehold_redis::{
    Greeted, Greeting, ScriptCall,
    classify::classify,
    decode::{ScriptReply, text},
    evaluate, millis, needed, run_in,
};
use redis::{Cmd, RedisError, RedisResult, Value, aio::MultiplexedConnection, cmd};

use super::scripts;
use crate::failure::same_server;

/// The longest ttl that any runtime of the group has told, in milliseconds: a node that lost its data
/// cannot tell it.
pub(super) type Longest = Arc<AtomicU64>;

/// The run of the server to which each node has led last, by the place of the node: two names of one server
/// are one node.
#[derive(Debug, Default)]
pub(super) struct Runs(Mutex<BTreeMap<String, String>>);

impl Runs {
    /// A node leads to the server of a run; an error if another node does.
    pub(super) fn meet(&self, place: &str, run: &str) -> Result<(), StoreError> {
        let mut known = self.0.lock();
        known.remove(place);
        if let Some((other, _)) = known.iter().find(|(_, other)| *other == run) {
            return Err(same_server(place, other));
        }
        known.insert(place.to_owned(), run.to_owned());
        Ok(())
    }
}

/// Reads the boot mark of a node on each new connection, before any command. A restart ends all
/// connections, so no command comes to a new run of a server before its mark says so.
#[derive(Debug)]
// ADR 0038
pub(super) struct Boot {
    pub(super) key: String,
    pub(super) place: String,
    pub(super) settings: QuorumSettings,
    pub(super) longest: Longest,
    pub(super) runs: Arc<Runs>,
    /// Whether a connection was greeted before.
    pub(super) has_worked: AtomicBool,
}

impl Greeting for Boot {
    fn greet(&self, mut connection: MultiplexedConnection) -> Greeted<'_> {
        Box::pin(async move {
            let run = run_id(&mut connection, self.has_worked.load(Ordering::Relaxed)).await?;
            self.runs.meet(&self.place, &run)?;
            let persists = persists_all(&mut connection).await;
            self.mark(&mut connection, &run, persists).await?;
            self.has_worked.store(true, Ordering::Relaxed);
            Ok(())
        })
    }
}

impl Boot {
    async fn mark(
        &self,
        connection: &mut MultiplexedConnection,
        run: &str,
        persists: bool,
    ) -> Result<(), StoreError> {
        let own = millis(self.settings.most_ttl());
        let longest = self.longest.load(Ordering::Relaxed).max(own);
        let wait = Duration::from_millis(longest) + self.settings.clock_tolerance() * 2;
        let write = |to: &mut Cmd| {
            to.arg(&self.key).arg(run).arg(millis(wait)).arg(longest).arg(u8::from(persists));
        };
        let call = ScriptCall::new(&scripts::BOOT, 1, &write);
        let told = evaluate(connection, call, false, Duration::ZERO).await;
        let has_worked = self.has_worked.load(Ordering::Relaxed);
        let told = told.map_err(|error| refused("EVALSHA", &error, has_worked).not_sent())?.answer;
        let told = ScriptReply::new(&told)?;
        let (rest, most, has_lost) = (told.number(0)?, told.number(1)?, told.number(2)? == 1);
        self.longest.fetch_max(most, Ordering::Relaxed);
        if has_lost {
            tracing::warn!(
                node = %self.place,
                counts_in_ms = rest,
                "a node of the quorum is new or has lost data, and stays out for a while"
            );
        }
        Ok(())
    }
}

/// The refusal of a command. One that nobody knows lasts, unless the command has worked before: a proxy may
/// answer for a while.
fn refused(command: &str, error: &RedisError, has_worked: bool) -> StoreError {
    let refused = classify(error);
    if has_worked { refused } else { needed(command, refused) }
}

/// The id of the server's run. `INFO` may have worked before.
pub(super) async fn run_id(
    connection: &mut MultiplexedConnection,
    has_worked: bool,
) -> Result<String, StoreError> {
    let told: Value = cmd("INFO").arg("server").query_async(connection).await.map_err(|error| {
        let error = refused("INFO", &error, has_worked);
        if error.kind() == StoreErrorKind::Config {
            return error.with_remedy(
                "allow INFO: without it a node that came back without its data cannot be told",
            );
        }
        error.not_sent()
    })?;
    let told = text(&told).unwrap_or_default();
    run_in(&told).map(str::to_owned).ok_or_else(|| {
        let what = "the server does not tell its run_id in answer to INFO";
        StoreError::new(StoreErrorKind::Config, what, "use a server that does").as_answer()
    })
}

/// Whether a server persists every write before it answers; `false` if the user may not ask.
pub(super) async fn persists_all(connection: &mut MultiplexedConnection) -> bool {
    for (name, wanted) in [("appendonly", "yes"), ("appendfsync", "always")] {
        let asked = cmd("CONFIG").arg("GET").arg(name).take();
        // A map in RESP3, a list of pairs before.
        let told: RedisResult<BTreeMap<String, String>> = asked.query_async(connection).await;
        if !told.is_ok_and(|told| told.get(name).is_some_and(|value| value == wanted)) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_one_node_under_all_its_names() {
        let runs = Runs::default();
        assert!(runs.meet("a", "1").is_ok() && runs.meet("b", "2").is_ok());
        let error = runs.meet("c", "1").unwrap_err().to_string();
        assert!(error.contains("a and c lead to the same server"), "{error}");
        // It has restarted, or leads to another one.
        assert!(runs.meet("a", "3").is_ok() && runs.meet("c", "1").is_ok());
        assert!(runs.meet("b", "3").is_err());
        assert!(runs.meet("a", "2").is_ok(), "the other one has left it");
    }

    #[test]
    fn a_refusal_that_nobody_knows_lasts_unless_the_command_has_worked() {
        let error = redis::make_extension_error("ERR".into(), Some("we would rather not".into()));
        assert_eq!(refused("INFO", &error, false).kind(), StoreErrorKind::Config);
        let later = refused("INFO", &error, true).not_sent();
        assert_eq!(later.kind(), StoreErrorKind::Definite);
    }
}
