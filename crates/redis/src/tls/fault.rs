//! What it means that a TLS handshake fails. The library's types decide, not its words.

use leasehold_core::{
    StoreError,
    StoreErrorKind::{self, Config, Definite},
};
use redis::RedisError;
use rustls::{AlertDescription, CertificateError, Error};

use super::settings::{TlsNames, TlsSettings};
use crate::classify::{NOT_THERE, NotDialed, carried};

/// Why a connection was not made, if TLS is the reason.
pub(super) fn told(settings: &TlsSettings, is_tls: bool, error: &RedisError) -> Option<NotDialed> {
    let TlsNames { certificate, .. } = settings.names;
    let is_cut = error.is_connection_dropped() && !error.is_connection_refusal();
    let Some(error) = carried::<Error>(error) else {
        // Its alert may be lost behind the end of the connection.
        return (is_tls && is_cut).then(|| {
            let what = "cannot connect to Redis: the server ended the TLS connection";
            let remedy = format!(
                "it may have reached its maxclients, ask for a client certificate ({certificate}), expect no TLS \
                 (redis://), or may not be a Redis server"
            );
            NotDialed { was_cut: true, ..StoreError::new(Definite, what, remedy).into() }
        });
    };
    let (kind, what, remedy) = match error {
        Error::InvalidCertificate(error) => certificate_of_server(settings, error),
        Error::AlertReceived(alert) => alerted(settings, *alert),
        Error::InvalidMessage(_) => return Some(foreign()),
        Error::PeerIncompatible(_) => no_version(),
        other => (Definite, format!("the TLS handshake failed: {other}"), NOT_THERE.into()),
    };
    Some(StoreError::new(kind, format!("cannot connect to Redis: {what}"), remedy).into())
}

/// What answers is no TLS.
pub(super) fn foreign() -> NotDialed {
    let what = "what answers there does not speak TLS";
    let remedy = "without TLS, write redis://; or it may not be a Redis server";
    let error = StoreError::new(Config, what, remedy);
    NotDialed { is_foreign: true, ..error.into() }
}

type Told = (StoreErrorKind, String, String);

fn certificate_of_server(settings: &TlsSettings, error: &CertificateError) -> Told {
    use CertificateError as Of;
    let TlsNames { ca, .. } = settings.names;
    let (what, remedy) = match error {
        // A bad signature: of another authority that has the same name.
        Of::UnknownIssuer | Of::BadSignature if settings.root_ca.is_some() => (
            format!("no certificate authority of {ca} has issued the server's certificate"),
            format!("give {ca} the certificate of the authority that has"),
        ),
        Of::UnknownIssuer | Of::BadSignature => (
            "no certificate authority of this system has issued the server's certificate".into(),
            format!("trust the server's certificate authority with {ca}"),
        ),
        Of::NotValidForName | Of::NotValidForNameContext { .. } => (
            format!("the server's certificate is for other names: {error}"),
            "correct the host of the address, or give the server a certificate for it".into(),
        ),
        Of::Expired | Of::ExpiredContext { .. } => (
            format!("the server's certificate has expired: {error}"),
            "renew the server's certificate, or correct this machine's clock".into(),
        ),
        Of::NotValidYet | Of::NotValidYetContext { .. } => (
            format!("the server's certificate is not valid yet: {error}"),
            "correct this machine's clock".into(),
        ),
        Of::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => (
            "the server shows the certificate of an authority (CA:TRUE), as openssl req -x509 makes it".into(),
            "give the server a certificate of its own, with basicConstraints CA:FALSE".into(),
        ),
        other => (
            format!("the server's certificate cannot be used: {other}"),
            "give the server a certificate of X.509 v3 for servers, with its name in subjectAltName".into(),
        ),
    };
    (Config, what, remedy)
}

/// What the server says of this client in an alert.
fn alerted(settings: &TlsSettings, alert: AlertDescription) -> Told {
    use AlertDescription as Of;
    let TlsNames { certificate, key, .. } = settings.names;
    let give = if certificate == key {
        format!("give it one with {certificate}")
    } else {
        format!("give it one with {certificate} and {key}")
    };
    let has_one = settings.client.is_some();
    match alert {
        Of::CertificateRequired if !has_one => {
            (Config, "the server asks for a client certificate".into(), give)
        }
        // TLS 1.2 says no more to a client without a certificate.
        Of::HandshakeFailure if !has_one => (
            Config,
            "the server ended the TLS handshake: it may ask for a client certificate, or have no cipher in common with \
             this client"
                .into(),
            give,
        ),
        Of::ProtocolVersion | Of::InsufficientSecurity | Of::HandshakeFailure => no_version(),
        Of::CertificateRequired
        | Of::BadCertificate
        | Of::UnsupportedCertificate
        | Of::CertificateRevoked
        | Of::CertificateExpired
        | Of::CertificateUnknown
        | Of::UnknownCA
        | Of::AccessDenied
        | Of::DecryptError => (
            Config,
            format!("the server refuses the client certificate of {certificate} ({alert:?})"),
            match alert {
                Of::CertificateExpired => "renew it".into(),
                Of::UnknownCA | Of::DecryptError => {
                    "give one that an authority of the server's `tls-ca-cert-file` has issued".into()
                }
                _ => "the server's log may say why".into(),
            },
        ),
        Of::UnrecognisedName => (
            Config,
            "the server has no certificate for the host of the address".into(),
            "correct the host of the address".into(),
        ),
        other => {
            (Definite, format!("the server ended the TLS handshake ({other:?})"), NOT_THERE.into())
        }
    }
}

fn no_version() -> Told {
    let what = "server and client have no version of TLS or no cipher in common";
    (Config, what.into(), "allow TLSv1.2 or TLSv1.3 in the server's `tls-protocols`".into())
}
