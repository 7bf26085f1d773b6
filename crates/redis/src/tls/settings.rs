use std::{fmt, mem, sync::Arc};

use leasehold_core::{StoreError, StoreErrorKind};
use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, TlsCertificates};

use super::{
    check::{Unfit, anchors, certificates, key, misfit},
    given::{TlsGiven, TlsNames},
    no_tls,
    pem::Pem,
};
use crate::{
    address::RedisAddress,
    classify::{classify_dial, no_descriptors, no_runtime},
    not_dialed::NotDialed,
};

/// Whom to trust, who to be, and what the settings are called.
#[derive(Clone, Default)]
pub(crate) struct TlsSettings {
    pub(crate) root_ca: Option<Pem>,
    pub(crate) client: Option<(Pem, Pem)>,
    pub(crate) names: TlsNames,
    /// Held while they are read.
    pub(super) reading: Arc<tokio::sync::Mutex<()>>,
}

impl TlsSettings {
    /// Reads what was given, and checks it. An address without TLS would use none of it, and send a password in
    /// clear.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` that names the first part that cannot be used.
    pub(crate) fn check(&self, address: &RedisAddress) -> Result<(), StoreError> {
        if !matches!(address.info().addr(), ConnectionAddr::TcpTls { .. }) {
            let ca = self.root_ca.as_ref().map(|_| self.names.ca);
            let Some(setting) = ca.or_else(|| self.client.as_ref().map(|_| self.names.certificate))
            else {
                return Ok(());
            };
            let what = format!("{setting} is given, and the address {address} is one without TLS");
            let remedy =
                "begin the address with rediss instead of redis, or leave the settings of TLS out";
            return Err(StoreError::new(StoreErrorKind::Config, what, remedy));
        }
        self.read().map(drop)
    }

    /// A client with what is there now, for one connection. An error is `Definite`. The caller keeps the
    /// deadline; what it no longer waits for is read to its end.
    pub(crate) async fn client(&self, info: ConnectionInfo) -> Result<Client, StoreError> {
        let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        if is_tls {
            install_crypto();
        }
        let made = if is_tls && (self.root_ca.is_some() || self.client.is_some()) {
            Client::build_with_tls(info, self.read_aside().await?)
        } else {
            // A client that the user made may have certificates of its own.
            Client::open(info)
        };
        made.map_err(|error| classify_dial(&error))
    }

    /// What of it the user has given.
    pub(crate) fn given(&self) -> TlsGiven {
        let (trusts, shows) = (self.root_ca.is_some(), self.client.is_some());
        TlsGiven { names: self.names, trusts, shows }
    }

    /// Completes when the server at an address is known not to speak TLS, although the address asks for it:
    /// then it answers without. It sends no secret.
    pub(crate) async fn answered_without(info: &ConnectionInfo) -> NotDialed {
        no_tls::answered_without(info).await
    }

    /// As [`read`](Self::read), on a thread that may block: this one may have leases to renew. An error passes:
    /// what was fit before may be so again.
    async fn read_aside(&self) -> Result<TlsCertificates, StoreError> {
        // One at a time: a disk that hangs takes one thread, however many connections are tried.
        let turn = Arc::clone(&self.reading).lock_owned().await;
        let settings = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let read = settings.read();
            drop(turn);
            read
        });
        let read = reading.await.map_err(|died| no_runtime(&died))?;
        read.map_err(|unfit| {
            if unfit.is_ours() {
                return unfit;
            }
            let again = "it is read again for the next connection";
            let remedy = format!("{}; {again}", unfit.remedy());
            let what = format!("cannot connect to Redis: {}", unfit.what());
            StoreError::new(StoreErrorKind::Definite, what, remedy).ours()
        })
    }

    fn read(&self) -> Result<TlsCertificates, StoreError> {
        let TlsNames { ca, certificate, key } = self.names;
        let root_cert = self.root_ca.as_ref().map(|pem| fit(pem, ca, anchors)).transpose()?;
        let client_tls = match &self.client {
            Some((one, other)) => {
                let both = || pair((one, certificate), (other, key));
                // They are renewed one after the other.
                Some(both().or_else(|_| both())?)
            }
            None => None,
        };
        Ok(TlsCertificates { client_tls, root_cert })
    }
}

/// A text that passes a check.
fn fit<T>(
    pem: &Pem,
    setting: &str,
    check: impl FnOnce(&[u8]) -> Result<T, Unfit>,
) -> Result<Vec<u8>, StoreError> {
    let read = pem.read().map_err(|error| {
        let what = format!("{} cannot be read ({error})", pem.named(setting));
        if let Some(ours) = no_descriptors(&what) {
            return ours;
        }
        StoreError::new(StoreErrorKind::Config, what, "give what this process may read")
    })?;
    check(&read).map(drop).map_err(|unfit| told(pem, setting, &unfit))?;
    Ok(read)
}

/// A certificate, and a key that belongs to it.
fn pair(
    (one, certificate): (&Pem, &str),
    (other, its_key): (&Pem, &str),
) -> Result<ClientTlsConfig, StoreError> {
    let (mut chain, mut secret) = (Vec::new(), None);
    let client_cert = fit(one, certificate, |pem| certificates(pem).map(|found| chain = found))?;
    let client_key = fit(other, its_key, |pem| key(pem).map(|found| secret = Some(found)))?;
    install_crypto();
    match secret.and_then(|secret| misfit(mem::take(&mut chain), secret)) {
        Some(unfit) => Err(told(other, its_key, &unfit)),
        None => Ok(ClientTlsConfig { client_cert, client_key }),
    }
}

fn told(pem: &Pem, setting: &str, unfit: &Unfit) -> StoreError {
    let what = format!("{} {}", pem.named(setting), unfit.what);
    StoreError::new(StoreErrorKind::Config, what, unfit.remedy)
}

/// Installs a crypto provider when the process has none.
fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only if another thread was faster, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// `Debug` shows files alone.
impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("root_ca", &self.root_ca)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use leasehold_core::Mutex;
    use redis::IntoConnectionInfo as _;
    use tokio::{join, runtime};

    use super::*;

    #[test]
    fn what_blocks_while_it_is_read_does_not_stop_the_thread_that_dials() {
        let (goes_on, waits) = mpsc::channel();
        let waits = Mutex::new(waits);
        let read = move || {
            let waited = waits.lock().recv_timeout(Duration::from_secs(60));
            waited.map_err(std::io::Error::other)?;
            Ok(b"hello".to_vec())
        };
        let settings = TlsSettings { root_ca: Some(Pem::read_by(read)), ..TlsSettings::default() };
        let info = "rediss://h:1".into_connection_info().unwrap();
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let (made, ()) = runtime
            .block_on(async { join!(settings.client(info), async { goes_on.send(()).unwrap() }) });
        let error = made.map(drop).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Definite);
        assert!(error.what().contains("no certificate in PEM"), "{error}");
    }
}
