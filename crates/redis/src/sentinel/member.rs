use std::{io, sync::Arc, time::Duration};

use leasehold_core::Clock;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisError, aio::MultiplexedConnection,
};
use tokio::{
    select,
    sync::{Mutex, Notify},
};

use crate::{
    config::RedisConfig, durations::SENTINEL_REFRESHES, endpoint::Endpoint, tls::TlsSettings,
};

/// The channel on which a Sentinel says that another server is the master.
const SWITCHES: &str = "+switch-master";

/// For how long an answer of a Sentinel is awaited, and a connection to it.
pub(super) fn limit(config: &RedisConfig) -> Duration {
    (*SENTINEL_REFRESHES.end()).min(config.connect_timeout / 2)
}

/// Connects to a Sentinel, with the certificates that there are now.
///
/// # Errors
///
/// [`RedisError`] when the address or a certificate cannot be used, or the Sentinel cannot be reached, or
/// speaks no TLS although the address asks for it.
///
/// # Cancel safety
///
/// Dropping the future leaves a file to be read to its end, on a thread of its own.
pub async fn connect_to(
    config: &RedisConfig,
    clock: &dyn Clock,
    info: &ConnectionInfo,
    settings: &AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError> {
    let client = client_of(config, info).await?;
    let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let asking_without_tls = async {
        // Early, because its answer has to come before the limit, too.
        clock.sleep_until(clock.now() + limit(config) / 4).await;
        TlsSettings::answered_without(info).await
    };
    select! {
        biased;
        connected = client.get_multiplexed_async_connection_with_config(settings) => connected,
        has_no_tls = asking_without_tls, if is_tls => Err(io::Error::other(has_no_tls.error).into()),
    }
}

async fn client_of(config: &RedisConfig, info: &ConnectionInfo) -> Result<Client, RedisError> {
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let info = info.clone().set_redis_settings(settings.set_skip_set_lib_name());
    // As an error of the client library, in which others come, too.
    config.tls.client(info).await.map_err(|error| io::Error::other(error).into())
}

/// How to connect, with the TCP settings of `template`.
pub(super) fn with_tcp_settings(
    info: &ConnectionInfo,
    template: &ConnectionInfo,
) -> ConnectionInfo {
    info.clone().set_tcp_settings(template.tcp_settings().clone())
}

/// One Sentinel, and the connection to it, which is kept.
pub(super) struct Sentinel {
    config: RedisConfig,
    clock: Arc<dyn Clock>,
    info: ConnectionInfo,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Notified when the Sentinel reports a switch, or its connection ends.
    hint: Arc<Notify>,
}

impl Sentinel {
    pub(super) fn new(
        config: RedisConfig,
        clock: Arc<dyn Clock>,
        info: ConnectionInfo,
        hint: Arc<Notify>,
    ) -> Self {
        Self { config, clock, info, connection: Mutex::default(), hint }
    }

    /// Where it is.
    pub(super) fn place(&self) -> String {
        self.info.addr().to_string()
    }

    /// Asks where the master of a name is; `None` if the Sentinel knows no such name. Dropping the
    /// future closes the connection, whose next answer would be this one's.
    pub(super) async fn ask(&self, master: &str) -> Result<Option<Endpoint>, RedisError> {
        let mut kept = self.connection.lock().await;
        let mut answer = match kept.take() {
            Some(connection) => ask_on(connection, master).await,
            None => ask_on(self.connect().await?, master).await,
        };
        if answer.as_ref().is_err_and(RedisError::is_connection_dropped) {
            // It ended while nothing was asked, or the Sentinel ends every connection.
            answer = ask_on(self.connect().await?, master).await;
        }
        let (endpoint, connection) = answer?;
        *kept = Some(connection);
        Ok(endpoint)
    }

    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let hint = Arc::clone(&self.hint);
        let heard = move |push: PushInfo| {
            if matches!(push.kind, PushKind::Message | PushKind::Disconnection) {
                hint.notify_one();
            }
            Ok::<(), ()>(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.config.connect_timeout))
            .set_response_timeout(None)
            .set_push_sender(heard);
        let mut connection = connect_to(&self.config, &*self.clock, &self.info, &config).await?;
        // Only a hint: a user of the Sentinel may lack the right to it.
        let _ = connection.subscribe(SWITCHES).await;
        Ok(connection)
    }
}

async fn ask_on(
    mut connection: MultiplexedConnection,
    master: &str,
) -> Result<(Option<Endpoint>, MultiplexedConnection), RedisError> {
    let asked = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master).take();
    let endpoint: Option<(String, u16)> = asked.query_async(&mut connection).await?;
    Ok((endpoint.map(|(host, port)| Endpoint { host, port }), connection))
}
