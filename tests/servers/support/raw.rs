//! A plain connection, for what a service writes without a gate.

use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};

/// Whether a key exists.
pub(crate) async fn exists(raw: &mut MultiplexedConnection, key: &str) -> bool {
    redis::cmd("EXISTS").arg(key).query_async(raw).await.expect("an answer")
}

/// Connects; answers may take their time.
pub(crate) async fn connect(url: &str) -> MultiplexedConnection {
    let client = Client::open(url).expect("an address");
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    connecting.await.expect("the server answers")
}
