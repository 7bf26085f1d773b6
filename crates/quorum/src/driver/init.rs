use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use leasehold_core::{Clock, StoreError, StoreErrorKind, within};
use leasehold_redis::{
    Endpoint, RedisConfig,
    classify::{classify, unanswered},
    dial_once, millis,
};
use redis::{Cmd, FromRedisValue, aio::MultiplexedConnection, cmd};

use super::{
    boot::{Runs, persists_all, run_id},
    connect::check,
};
use crate::failure::{ONE_EACH, not_served};

/// How many places of its table a node looks at in one step.
const COUNT: u32 = 1000;

/// Lets the nodes of a new quorum count at once, which otherwise wait until no lease can be left that they
/// have forgotten.
///
/// The caller states that no client has used the nodes for the longest ttl of any client and twice the
/// tolerance. All nodes have to answer, and none may have a boot mark or a key of the namespace.
///
/// # Errors
///
/// [`StoreError`] that names the first node that stands in the way. `Config` when a node has a boot mark or a
/// key, when two addresses lead to one server, or for an address or settings that no quorum has. `Definite` or
/// `Indeterminate` when a node does not answer. Nothing was changed if a node failed when it was looked at; one
/// that fails when it is marked leaves the others counting.
///
/// # Cancel safety
///
/// Dropping the future leaves some of the nodes as they were, and boot marks on the others.
// ADR 0038
pub async fn init_quorum(config: &RedisConfig, clock: Arc<dyn Clock>) -> Result<(), StoreError> {
    check(config)?;
    let places = config.address.quorum().ok_or_else(|| {
        not_served("the address is not that of a quorum", "write redis+quorum://HOST,HOST,HOST")
    })?;
    // All are looked at before the first mark is written.
    let looking = places.iter().map(|place| NewNode::look(config, place, &clock));
    let nodes = try_join_all(looking).await?;
    let runs = Runs::default();
    for (place, node) in places.iter().zip(&nodes) {
        let met = runs.meet(&place.to_string(), &node.run);
        let told = |error: StoreError| format!("nothing was changed: {}", error.what());
        met.map_err(|error| not_served(told(error), ONE_EACH).as_answer())?;
    }
    // A node that fails keeps none of the others back.
    join_all(nodes.iter().map(NewNode::mark)).await.into_iter().collect()
}

/// A node on which nothing of a quorum was found.
struct NewNode<'a> {
    config: RedisConfig,
    clock: &'a Arc<dyn Clock>,
    connection: MultiplexedConnection,
    /// Its run, and whether that persists every write, as a boot mark has it.
    run: String,
}

impl<'a> NewNode<'a> {
    async fn look(
        config: &RedisConfig,
        place: &Endpoint,
        clock: &'a Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let config = config.at(place)?;
        let named = |error: StoreError| error.from_endpoint(place.to_string());
        let (connection, _) = dial_once(&config, clock).await.map_err(named)?;
        let mut node = Self { config, clock, connection, run: String::new() };
        node.read_run().await.map_err(named)?;
        node.is_new().await.map_err(named)?;
        Ok(node)
    }

    async fn read_run(&mut self) -> Result<(), StoreError> {
        let mut connection = self.connection.clone();
        let asked = async {
            let run = run_id(&mut connection, false).await?;
            Ok((run, persists_all(&mut connection).await))
        };
        let (run, persists) = self.in_time(asked).await?;
        self.run = if persists { run + "/always" } else { run };
        Ok(())
    }

    /// Nothing of the namespace is here.
    async fn is_new(&self) -> Result<(), StoreError> {
        let boot = self.config.keys.boot();
        if self.ask(cmd("EXISTS").arg(&boot)).await? {
            return Err(in_the_way(
                "it has a boot mark: a client has connected to it, or this was done before",
            ));
        }
        let any = self.config.keys.any();
        let mut at = 0_u64;
        loop {
            let step = cmd("SCAN").arg(at).arg("MATCH").arg(&any).arg("COUNT").arg(COUNT).take();
            let (next, keys): (u64, Vec<Vec<u8>>) = self.ask(&step).await?;
            if let Some(key) = keys.first() {
                let key = String::from_utf8_lossy(key);
                return Err(in_the_way(&format!("it has the key {key:?} of this namespace")));
            }
            if next == 0 {
                return Ok(());
            }
            at = next;
        }
    }

    /// Lets it count from now on, unless a client has marked it meanwhile.
    async fn mark(&self) -> Result<(), StoreError> {
        let named = |error: StoreError| error.from_endpoint(&*self.config.address.to_string());
        let (seconds, micros): (u64, u64) = self.ask(&cmd("TIME")).await.map_err(named)?;
        let (now, longest) = (seconds * 1000 + micros / 1000, self.config.quorum.most_ttl());
        let mark = format!("{now} {} {}", millis(longest), self.run);
        let set = cmd("SET").arg(self.config.keys.boot()).arg(mark).arg("NX").take();
        if self.ask::<Option<String>>(&set).await.map_err(named)?.is_some() {
            return Ok(());
        }
        let what = "somebody else has marked this node meanwhile";
        let remedy = "connect the clients: each node counts as its mark says";
        Err(named(not_served(what, remedy).as_answer()))
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let mut connection = self.connection.clone();
        let asked = async { command.query_async(&mut connection).await.map_err(|e| classify(&e)) };
        self.in_time(asked).await
    }

    async fn in_time<T>(
        &self,
        asked: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let deadline = self.clock.now() + self.config.command_timeout;
        within(&**self.clock, deadline, asked).await.unwrap_or_else(|| Err(unanswered()))
    }
}

fn in_the_way(what: &str) -> StoreError {
    let what = format!("the quorum is not new, and nothing was changed: {what}");
    let remedy = "connect the clients instead: each node counts by itself as soon as no lease can be left that \
                  it has forgotten";
    StoreError::new(StoreErrorKind::Config, what, remedy).as_answer()
}
