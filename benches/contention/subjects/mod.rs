//! What is compared.

pub(crate) mod floor_one_script;
pub(crate) mod floor_push;
pub(crate) mod floor_queue;
pub(crate) mod leasehold;
pub(crate) mod rslock;
pub(crate) mod tokio_mutex;

use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisError};

/// A client that sends small packets at once and hears what the server says unasked.
fn client(url: &str) -> Result<Client, RedisError> {
    let info = url.into_connection_info()?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_tcp_settings(tcp).set_redis_settings(redis))
}
