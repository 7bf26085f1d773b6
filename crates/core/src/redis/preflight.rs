use redis::{RedisError, Value};

use super::{classify::classify_dial, decode::text};
use crate::store::{StoreError, StoreErrorKind};

/// The oldest server whose scripts behave as these need.
const OLDEST: (u32, u32) = (6, 2);

/// Checks what a server tells of itself in answer to `HELLO`: its version, and unless that is
/// allowed that it is no node of a Cluster, where one command could not renew leases of several slots.
///
/// `INFO` would tell it too, but may be denied; `HELLO` is allowed before anything else.
pub(super) fn check_version(
    hello: Result<Value, RedisError>,
    cluster_node: bool,
) -> Result<(), StoreError> {
    let hello = match hello {
        Ok(hello) => hello,
        // 5 and older do not know the command, 6.0 wants an argument for it.
        Err(error) if is_too_old(&error) => return Err(too_old("older than 6.2")),
        Err(error) => return Err(classify_dial(&error)),
    };
    let Some(version) = told(&hello, "version") else {
        return Err(StoreError::new(
            StoreErrorKind::Config,
            "the server does not tell its version in answer to HELLO",
            "connect to Redis 6.2 or newer, or to a server that imitates it fully",
        )
        .as_answer());
    };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST {
        return Err(too_old(&version));
    }
    if !cluster_node && told(&hello, "mode").as_deref() == Some("cluster") {
        return Err(StoreError::new(
            StoreErrorKind::Config,
            "the server is a node of a Redis Cluster, which this version does not support",
            "connect to a server of its own, one without `cluster-enabled`",
        )
        .as_answer());
    }
    Ok(())
}

fn is_too_old(error: &RedisError) -> bool {
    let words = error.to_string();
    words.contains("unknown command") || words.contains("wrong number of arguments")
}

fn too_old(version: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Config,
        format!("the server's version is {version}"),
        "use Redis 6.2 or newer",
    )
    .as_answer()
}

/// A field of a map, or of the flat array that stands for one in RESP2.
fn told(hello: &Value, field: &str) -> Option<String> {
    let is_asked = |key: &Value| text(key).as_deref() == Some(field);
    match hello {
        Value::Array(parts) => {
            let mut fields = parts.chunks_exact(2);
            fields.find(|pair| is_asked(&pair[0])).and_then(|pair| text(&pair[1]))
        }
        Value::Map(pairs) => pairs.iter().find(|(key, _)| is_asked(key)).and_then(|(_, v)| text(v)),
        _ => None,
    }
}
