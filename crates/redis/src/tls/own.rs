//! A connection that trusts the given authorities and reads none of the system.

use std::{io, net::SocketAddr, sync::Arc};

use futures_util::future::select_ok;
use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates,
    aio::MultiplexedConnection,
    io::tcp::{TcpSettings, socket2::SockRef},
};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::check::{certificates, key};

/// Connects as the client library does, which would read the authorities of the system, too.
///
/// The task of the connection ends with its last handle, and once what was sent is answered or the server closes.
pub(super) async fn connect(
    info: &ConnectionInfo,
    given: &TlsCertificates,
    config: &AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError> {
    let ConnectionAddr::TcpTls { host, port, .. } = info.addr() else {
        return Err(io::Error::other("the address is one without TLS").into());
    };
    let connector = TlsConnector::from(Arc::new(trusting(given).map_err(io::Error::other)?));
    let name = ServerName::try_from(host.clone())?;
    let all: Vec<_> = lookup_host((host.as_str(), *port)).await?.collect();
    if all.is_empty() {
        return Err(io::Error::other("failed to lookup address information").into());
    }
    let connecting = all.into_iter().map(|at| {
        let (connector, name) = (&connector, name.clone());
        Box::pin(
            async move { connector.connect(name, stream(at, info.tcp_settings()).await?).await },
        )
    });
    let (stream, _) = select_ok(connecting).await?;
    let config = config.clone();
    let (connection, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await?;
    drop(tokio::spawn(driver));
    Ok(connection)
}

async fn stream(at: SocketAddr, settings: &TcpSettings) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(at).await?;
    stream.set_nodelay(settings.nodelay())?;
    let socket = SockRef::from(&stream);
    settings.keepalive().map_or(Ok(()), |keepalive| socket.set_tcp_keepalive(keepalive))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(settings.user_timeout())?;
    Ok(stream)
}

/// What was given has been checked.
fn trusting(given: &TlsCertificates) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let trusted = given.root_cert.as_deref().unwrap_or_default();
    for certificate in certificates(trusted).map_err(|unfit| unfit.what)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let Some(shown) = &given.client_tls else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates(&shown.client_cert).map_err(|unfit| unfit.what)?;
    let secret = key(&shown.client_key).map_err(|unfit| unfit.what)?;
    builder.with_client_auth_cert(chain, secret).map_err(|error| error.to_string())
}
