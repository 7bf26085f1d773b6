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
    acquire: Script,
    release: Script,
}

/// As many connections as the library uses by default.
const CONNECTIONS: usize = 2;

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
    Ok(Arc::new(Floor {
        connections,
        acquire: Script::new(include_str!("../../crates/core/src/lua/acquire.lua")),
        release: Script::new(include_str!("../../crates/core/src/lua/release.lua")),
    }))
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

async fn pair_of(
    floor: &Floor,
    connection: &mut MultiplexedConnection,
    name: &str,
    number: usize,
) -> Result<(), redis::RedisError> {
    let id = format!("00000000-0000-4000-8000-000000000000:{number}");
    let lease = format!("floor:{{{name}}}:lease");
    let granted: (String, String, String, u64, u64) = floor
        .acquire
        .key(&lease)
        .key(format!("floor:{{{name}}}:fence"))
        .key(format!("floor:{{{name}}}:withdrawn:{id}"))
        .arg(&id)
        .arg(30_000)
        .arg(0)
        .arg(604_800_000)
        .arg("host/1/bench")
        .invoke_async(connection)
        .await?;
    let mut release = floor.release.key(&lease);
    let _: Value = release.arg(&id).arg(granted.1).arg(0).invoke_async(connection).await?;
    Ok(())
}
