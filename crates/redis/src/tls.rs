use std::fmt;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisResult, TlsCertificates,
};

/// Whom to trust, and who to be.
#[derive(Clone, Default)]
pub(super) struct TlsSettings {
    pub(super) root_ca: Option<Vec<u8>>,
    pub(super) client: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsSettings {
    /// A client; for a TLS address it installs a crypto provider when the process has none.
    pub(super) fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Client::open(info);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails only if another thread was faster, which serves as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        if self.root_ca.is_none() && self.client.is_none() {
            // A client that the user made may have certificates of its own.
            return Client::open(info);
        }
        let client_tls = self
            .client
            .clone()
            .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let certificates = TlsCertificates { client_tls, root_cert: self.root_ca.clone() };
        Client::build_with_tls(info, certificates)
    }
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("root_ca", &self.root_ca.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}
