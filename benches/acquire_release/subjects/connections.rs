use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, aio::MultiplexedConnection};

/// As many connections as Leasehold uses by default.
const CONNECTIONS: usize = 2;

/// Connections that send small packets at once, as Leasehold's do.
pub(crate) async fn connections(
    url: &str,
) -> Result<Vec<MultiplexedConnection>, redis::RedisError> {
    let info = url.into_connection_info()?;
    let settings = info.tcp_settings().clone().set_nodelay(true);
    let client = Client::open(info.set_tcp_settings(settings))?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        connections.push(client.get_multiplexed_async_connection_with_config(&config).await?);
    }
    Ok(connections)
}

/// The connection of a name: always the same one, as in Leasehold.
pub(crate) fn connection(
    connections: &[MultiplexedConnection],
    name: &str,
) -> MultiplexedConnection {
    let sum: usize = name.bytes().map(usize::from).sum();
    connections[sum % connections.len()].clone()
}
