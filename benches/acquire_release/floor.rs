#[path = "../contention/library.rs"]
mod library;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use redis::{AsyncConnectionConfig, Client, Script, Value, aio::MultiplexedConnection};

use crate::round::Share;

/// The scripts of the library, called without it.
#[derive(Debug)]
pub(crate) struct Floor {
    connections: Vec<MultiplexedConnection>,
    acquire: &'static Script,
    release: &'static Script,
}

/// As many connections as the library uses by default.
const CONNECTIONS: usize = 2;

/// For how long the counter of a name stays, in milliseconds; as long as the library's.
const RETENTION: u64 = 604_800_000;

/// Connects with small packets sent at once, as the library does.
pub(crate) async fn connect(url: &str) -> Result<Arc<Floor>, redis::RedisError> {
    let info = redis::IntoConnectionInfo::into_connection_info(url)?;
    let settings = info.tcp_settings().clone().set_nodelay(true);
    let client = Client::open(info.set_tcp_settings(settings))?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        connections.push(client.get_multiplexed_async_connection_with_config(&config).await?);
    }
    Ok(Arc::new(Floor { connections, acquire: library::acquire(), release: library::release() }))
}

/// Acquires and releases each name in turn, one script call each.
pub(crate) async fn worker(floor: Arc<Floor>, share: Share) -> Result<(), String> {
    for pair in 0..share.pairs {
        let name = &share.names[pair % share.names.len()];
        let mut connection = floor.connections[lane(name)].clone();
        pair_of(&floor, &mut connection, name, pair).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A name is always on the same connection, as in the library.
fn lane(name: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    usize::try_from(hasher.finish() % CONNECTIONS as u64).unwrap_or(0)
}

/// With the keys and arguments that the library sends.
async fn pair_of(
    floor: &Floor,
    connection: &mut MultiplexedConnection,
    name: &str,
    number: usize,
) -> Result<(), redis::RedisError> {
    let id = format!("00000000-0000-4000-8000-000000000000:{number}");
    let (keys, channels) = (library::keys("floor", name), "floor:runtime:");
    let mut acquire = floor.acquire.prepare_invoke();
    for key in &keys {
        acquire.key(key);
    }
    acquire.key(library::withdrawn("floor", name, &id));
    acquire.arg(&id).arg(30_000).arg(0).arg(RETENTION).arg("host/1/bench").arg(channels).arg(name);
    let granted: (String, String, String, u64, u64, u64) = acquire.invoke_async(connection).await?;
    let mut release = floor.release.prepare_invoke();
    for key in &keys {
        release.key(key);
    }
    release.arg(&id).arg(granted.1).arg(0).arg(RETENTION).arg(channels).arg(name);
    let _: Value = release.invoke_async(connection).await?;
    Ok(())
}
