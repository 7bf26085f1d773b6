//! What it means that a TLS handshake fails. The library's types decide, not its words.

use std::{error::Error as _, sync::Arc};

use leasehold_core::{
    StoreError,
    StoreErrorKind::{self, Config, Definite},
};
use redis::RedisError;
use rustls::{AlertDescription, CertificateError, Error};

use super::given::{TlsGiven, TlsNames};
use crate::{
    classify::no_descriptors,
    not_dialed::{NotDialed, carried},
};

/// Why a connection was not made, if TLS is the reason.
pub(crate) fn told(given: TlsGiven, is_tls: bool, error: &RedisError) -> Option<NotDialed> {
    let TlsNames { certificate, .. } = given.names;
    if let Some(unread) = unread(error) {
        return Some(no_authorities(given, unread));
    }
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
        Error::InvalidCertificate(error) => certificate_of_server(given, error),
        Error::AlertReceived(alert) => alerted(given, *alert),
        Error::InvalidMessage(_) => return Some(foreign()),
        Error::PeerIncompatible(_) => no_version(),
        other => (Definite, format!("the TLS handshake failed: {other}"), LOG_MAY_SAY.into()),
    };
    let error = StoreError::new(kind, format!("cannot connect to Redis: {what}"), remedy);
    Some(NotDialed { is_of_setup: true, ..error.into() })
}

/// Why the authorities of this system could not be read, if that is why a connection was not made.
fn unread(error: &RedisError) -> Option<&rustls_native_certs::Error> {
    let source = error.source()?.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    source.downcast_ref()
}

fn no_authorities(given: TlsGiven, unread: &rustls_native_certs::Error) -> NotDialed {
    let why = unread.to_string();
    if let Some(ours) = no_descriptors(&why) {
        return ours.into();
    }
    let what = format!(
        "the certificate authorities of this system cannot be read (SSL_CERT_FILE, SSL_CERT_DIR): {why}"
    );
    let ca = given.names.ca;
    // The client library reads them in any case.
    let readable = if given.trusts { format!(", such as that of {ca}") } else { String::new() };
    let remedy = format!(
        "install ca-certificates and unset both, or let SSL_CERT_FILE name a file that can be read{readable}, and unset \
         SSL_CERT_DIR"
    );
    NotDialed { is_of_setup: true, ..StoreError::new(Config, what, remedy).into() }
}

/// What answers is no TLS.
pub(super) fn foreign() -> NotDialed {
    let remedy = "without TLS, begin the address with redis instead of rediss; or it may not be a Redis server";
    let error = StoreError::new(Config, NO_TLS, remedy);
    NotDialed { is_foreign: true, ..error.into() }
}

const NO_TLS: &str = "what answers there does not speak TLS";

/// Whether an error says that what answers is no TLS.
pub(crate) fn is_foreign(error: &StoreError) -> bool {
    error.what() == NO_TLS
}

const LOG_MAY_SAY: &str = "the server's log may say why";

type Told = (StoreErrorKind, String, String);

fn certificate_of_server(given: TlsGiven, error: &CertificateError) -> Told {
    use CertificateError as Of;
    let TlsNames { ca, .. } = given.names;
    let (what, remedy) = match error {
        // A bad signature: of another authority that has the same name.
        Of::UnknownIssuer | Of::BadSignature if given.trusts => (
            format!("no certificate authority of {ca} has issued the server's certificate"),
            format!("give {ca} the certificate of the authority that has"),
        ),
        Of::UnknownIssuer | Of::BadSignature => (
            "no certificate authority of this system has issued the server's certificate".into(),
            format!("trust the server's certificate authority with {ca}"),
        ),
        Of::NotValidForNameContext { presented, .. } if presented.is_empty() => (
            "the server's certificate has no name in a subjectAltName".into(),
            "issue one with the host of the address in its subjectAltName".into(),
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
            "correct this machine's clock, or wait, or issue another certificate".into(),
        ),
        Of::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => (
            "the server shows the certificate of an authority (CA:TRUE), as openssl req -x509 makes it".into(),
            "give the server a certificate of its own, with basicConstraints CA:FALSE".into(),
        ),
        Of::Other(other) if other.to_string().contains("UnsupportedCertVersion") => (
            "the server's certificate is of version 1".into(),
            "issue one of version 3 with a subjectAltName".into(),
        ),
        other => (
            format!("the server's certificate cannot be used: {other}"),
            "give the server a certificate of X.509 v3 for servers, with its name in subjectAltName".into(),
        ),
    };
    (Config, what, remedy)
}

/// What the server says of this client in an alert.
fn alerted(given: TlsGiven, alert: AlertDescription) -> Told {
    use AlertDescription as Of;
    let TlsNames { certificate, key, .. } = given.names;
    let give = if certificate == key {
        format!("give it one with {certificate}")
    } else {
        format!("give it one with {certificate} and {key}")
    };
    let has_one = given.shows;
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
            format!("{give}; or {ALLOW_CIPHERS}"),
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
        | Of::DecryptError => {
            let refuses =
                format!("the server refuses the client certificate of {certificate} ({alert:?})");
            let (what, remedy) = match alert {
                _ if !has_one => (
                    format!("the server ended the TLS handshake ({alert:?}): it may ask for a client certificate"),
                    give,
                ),
                Of::CertificateExpired => (refuses, "renew it".into()),
                Of::UnknownCA | Of::DecryptError => (
                    refuses,
                    "give one that an authority of the server's `tls-ca-cert-file` has issued".into(),
                ),
                _ => (refuses, LOG_MAY_SAY.into()),
            };
            (Config, what, remedy)
        }
        Of::UnrecognisedName => (
            Config,
            "the server has no certificate for the host of the address".into(),
            "correct the host of the address".into(),
        ),
        other => {
            (Definite, format!("the server ended the TLS handshake ({other:?})"), LOG_MAY_SAY.into())
        }
    }
}

const ALLOW_CIPHERS: &str = "let the server have a key of RSA, ECDSA (P-256 or P-384) or Ed25519, and in its `tls-ciphers` ECDHE with AES-GCM \
     or ChaCha20";

fn no_version() -> Told {
    let what = "server and client have no version of TLS or no cipher in common";
    let remedy =
        format!("allow TLSv1.2 or TLSv1.3 in the server's `tls-protocols`; and {ALLOW_CIPHERS}");
    (Config, what.into(), remedy)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn failed(given: TlsGiven, error: Error) -> NotDialed {
        told(given, true, &io::Error::other(error).into()).unwrap()
    }

    fn shows_one() -> TlsGiven {
        TlsGiven { shows: true, ..TlsGiven::default() }
    }

    #[test]
    fn who_shows_no_certificate_is_not_told_that_it_is_refused() {
        use AlertDescription as Of;
        for alert in [Of::BadCertificate, Of::UnknownCA, Of::AccessDenied, Of::DecryptError] {
            let none = failed(TlsGiven::default(), Error::AlertReceived(alert)).error;
            let text = none.to_string();
            assert!(text.contains("may ask for a client certificate"), "{text}");
            assert!(!text.contains("refuses") && text.contains("give it one"), "{text}");
            let one = failed(shows_one(), Error::AlertReceived(alert)).error.to_string();
            assert!(one.contains("refuses the client certificate"), "{one}");
        }
    }

    #[test]
    fn a_certificate_is_wrong_unless_connections_have_worked_before() {
        for error in [
            Error::InvalidCertificate(CertificateError::UnknownIssuer),
            Error::InvalidCertificate(CertificateError::Expired),
            Error::AlertReceived(AlertDescription::UnknownCA),
            Error::AlertReceived(AlertDescription::UnrecognisedName),
        ] {
            let first = failed(shows_one(), error.clone());
            assert_eq!(first.error.kind(), Config, "{error}");
            let (what, remedy) = (first.error.what().to_owned(), first.error.remedy().to_owned());
            let later = first.for_now_if(true).error;
            assert_eq!(later.kind(), Definite, "{error}");
            assert_eq!((later.what(), later.remedy()), (&*what, &*remedy));
        }
    }

    #[test]
    fn a_certificate_is_told_with_what_makes_it_fit() {
        use CertificateError as Of;
        let version = rustls::OtherError(Arc::new(io::Error::other("UnsupportedCertVersion")));
        let names = |presented: &[&str]| Of::NotValidForNameContext {
            expected: "h".try_into().unwrap(),
            presented: presented.iter().map(|&name| name.to_owned()).collect(),
        };
        for (error, says) in [
            (Of::NotValidYet, "clock, or wait, or issue another certificate"),
            (Of::Other(version), "is of version 1; issue one of version 3 with a subjectAltName"),
            (names(&[]), "has no name in a subjectAltName"),
            (names(&["DnsName(\"other\")"]), "is for other names"),
        ] {
            let told = failed(TlsGiven::default(), Error::InvalidCertificate(error)).error;
            let text = told.to_string();
            assert!(text.contains(says) && !text.contains("Other("), "{text}");
        }
    }
}
