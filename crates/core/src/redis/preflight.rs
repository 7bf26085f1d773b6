use redis::{RedisError, Value};

use super::{classify::classify_dial, decode::text};
use crate::store::{StoreError, StoreErrorKind};

/// The oldest server whose scripts behave as these need.
const OLDEST: (u32, u32) = (6, 2);

/// Checks the version that a server tells in answer to `HELLO`.
///
/// `INFO` would tell it too, but may be denied; `HELLO` is allowed before anything else.
pub(super) fn check_version(hello: Result<Value, RedisError>) -> Result<(), StoreError> {
    let hello = match hello {
        Ok(hello) => hello,
        // 5 and older do not know the command, 6.0 wants an argument for it.
        Err(error) if is_too_old(&error) => return Err(too_old("older than 6.2")),
        Err(error) => return Err(classify_dial(&error)),
    };
    let Some(version) = version_of(&hello) else {
        return Err(StoreError::new(
            StoreErrorKind::Config,
            "the server does not tell its version in answer to HELLO",
            "connect to Redis 6.2 or newer, or to a server that imitates it fully",
        ));
    };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST { Err(too_old(&version)) } else { Ok(()) }
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
}

/// The version in a map, or in the flat array that stands for one in RESP2.
fn version_of(hello: &Value) -> Option<String> {
    let is_version = |key: &Value| text(key).as_deref() == Some("version");
    match hello {
        Value::Array(parts) => {
            let field = parts.iter().position(is_version)?;
            text(parts.get(field + 1)?)
        }
        Value::Map(pairs) => {
            pairs.iter().find(|(key, _)| is_version(key)).and_then(|(_, v)| text(v))
        }
        _ => None,
    }
}
