//! What a server is: its version, and whether it is a master.

use std::{borrow::Cow, collections::BTreeMap};

use leasehold_core::{
    StoreError,
    StoreErrorKind::{self, Config, Definite},
};
use redis::{RedisError, Value, aio::MultiplexedConnection, from_redis_value};

use super::{classify::NOT_THERE, decode::text, needed::not_dialed, not_dialed::NotDialed};

/// The oldest server whose scripts behave as these need.
const OLDEST: (u32, u32) = (6, 2);

/// How the error of a new connection to a replica begins.
pub(super) const REPLICA: &str = "the server is a replica of";

/// What is said of a server in the place of a node of a Cluster.
pub(super) const NO_NODE: &str = "the server is not a node of a Cluster";

/// What is said of servers that are none of those with keys for every name.
pub(super) const NODE: &str = "the server is a node of a Redis Cluster";
pub(super) const SENTINEL: &str = "the server is a Sentinel, which keeps no data";

/// Checks that a server is a master and new enough, and a node of a Cluster only where one is
/// expected: a node refuses commands about the slots of others.
pub(super) async fn check_server(
    connection: &mut MultiplexedConnection,
    is_node: bool,
) -> Result<(), NotDialed> {
    let hello = hello(connection).await.map_err(not_greeted)?;
    let field = |name| hello.get(name).and_then(text);
    let version = field("version").ok_or_else(|| tells_not("version"))?;
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST {
        return Err(too_old(&version).into());
    }
    let refused = match field("mode").as_deref() {
        Some("cluster") if !is_node => {
            refusal(Config, NODE, "write redis+cluster://host,host,host, with some of its nodes")
        }
        Some("standalone") if is_node => refusal(Config, NO_NODE, NOT_THERE),
        Some("sentinel") => refusal(
            Config,
            SENTINEL,
            "write redis+sentinel://host,host,host/master, with all Sentinels and the master's name",
        ),
        _ => match field("role").as_deref() {
            Some("master") => return Ok(()),
            // It is retried while a task waits: the address may lead to the master soon.
            Some(_) => refusal(
                Definite,
                format!("{REPLICA} {}, and has no say about locks", master_of(connection).await),
                "write the master's address",
            ),
            None => tells_not("role"),
        },
    };
    Err(refused.into())
}

/// What a server is. `INFO` has the same facts, but may be denied. `HELLO` is always allowed.
///
/// # Errors
///
/// [`RedisError`] when the server refuses, or the connection ends.
///
/// # Cancel safety
///
/// Dropping the future leaves the answer unread.
pub async fn hello(
    connection: &mut MultiplexedConnection,
) -> Result<BTreeMap<String, Value>, RedisError> {
    let answer = redis::cmd("HELLO").query_async(connection).await?;
    // Something else than a map has none of the fields.
    Ok(from_redis_value(answer).unwrap_or_default())
}

/// The address of a replica's master. The user may lack the right to ask for it.
async fn master_of(connection: &mut MultiplexedConnection) -> String {
    type OfReplica = (String, String, u16, String, i64);
    match redis::cmd("ROLE").query_async::<OfReplica>(connection).await {
        Ok((_, host, port, ..)) => format!("{host}:{port}"),
        Err(_) => "another server".into(),
    }
}

/// An error that follows from what the server has answered.
fn refusal(
    kind: StoreErrorKind,
    what: impl Into<Cow<'static, str>>,
    remedy: &'static str,
) -> StoreError {
    StoreError::new(kind, what, remedy).as_answer()
}

fn tells_not(what: &str) -> StoreError {
    refusal(
        Config,
        format!("the server does not tell its {what} in answer to HELLO"),
        "connect to Redis 6.2 or newer, or to a server that imitates it fully",
    )
}

/// The failure of the first command, `HELLO`. Redis 5 does not know it, and some proxies do not; Redis 6.0 wants
/// an argument for it.
pub(super) fn not_greeted(error: RedisError) -> NotDialed {
    if error.to_string().contains("wrong number of arguments") {
        return too_old("older than 6.2").into();
    }
    not_dialed("HELLO", error)
}

fn too_old(version: &str) -> StoreError {
    refusal(Config, format!("the server's version is {version}"), "use Redis 6.2 or newer")
}
