use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// Where a Redis server is, and how to log in; shown without its credentials.
///
/// - `redis://[user:password@]host[:port][/database]`
/// - `rediss://…` for TLS, with the feature `tls`
/// - `redis+unix:///path[?db=0&user=…&pass=…]`, also `unix://`
#[derive(Clone)]
pub struct RedisAddress {
    info: ConnectionInfo,
}

impl RedisAddress {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`AddressError`] when it is not understood, or needs a feature that is not enabled.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let refuse = |reason: String| AddressError { url: without_credentials(url), reason };
        if has_unescaped_password(url) {
            return Err(refuse(
                "special characters of user and password need percent-encoding".into(),
            ));
        }
        // Another crate may have enabled TLS in the client library, without what it needs here.
        if url.starts_with("rediss://") && cfg!(not(feature = "tls")) {
            return Err(refuse("the feature `tls` is not enabled".into()));
        }
        // The detail of an error may repeat parts of the URL, so only its category is told.
        let told = url.into_connection_info();
        let info = told.map_err(|error| refuse(error.category().into()))?;
        if url.starts_with("rediss://") && url.ends_with("#insecure") {
            return Err(refuse("TLS without verification is not supported".into()));
        }
        Ok(Self { info })
    }

    /// How to connect, as the client library takes it.
    pub(super) fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// Whether the address asks for TLS.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "asked for TLS only"))]
    pub(super) fn is_tls(&self) -> bool {
        matches!(self.info.addr(), ConnectionAddr::TcpTls { .. })
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let db = self.info.redis_settings().db();
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) => write!(f, "redis://{host}:{port}/{db}"),
            ConnectionAddr::TcpTls { host, port, .. } => write!(f, "rediss://{host}:{port}/{db}"),
            ConnectionAddr::Unix(path) => write!(f, "redis+unix://{}?db={db}", path.display()),
            _ => f.write_str("redis"),
        }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A URL cut down to what may be shown: scheme, host, port and path.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let shown = if has_unescaped_password(url) {
        "…"
    } else {
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        rest.rsplit_once('@').map_or(rest, |(_, host)| host)
    };
    // Without a scheme it is not known which part is a password.
    if scheme.is_empty() { shown.into() } else { format!("{scheme}://{shown}") }
}

/// Whether a `#` or `?` comes before the end of what looks like credentials.
fn has_unescaped_password(url: &str) -> bool {
    let in_query = url.contains("unix://");
    !in_query && url.find(['?', '#']).is_some_and(|cut| url[cut..].contains('@'))
}

/// A text that is not the address of a Redis server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Redis address {url:?} cannot be used: {reason}; write redis://[user:password@]host[:port][/database], rediss://… or redis+unix:///path"
)]
pub struct AddressError {
    url: String,
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_credentials() {
        let address = RedisAddress::parse("redis://bob:secret@example.org:7000/3").unwrap();
        assert_eq!(address.to_string(), "redis://example.org:7000/3");
        assert_eq!(format!("{address:?}"), "redis://example.org:7000/3");
        let unix = RedisAddress::parse("redis+unix:///tmp/s?db=2&user=bob&pass=secret").unwrap();
        assert_eq!(unix.to_string(), "redis+unix:///tmp/s?db=2");
        assert_eq!(unix.info().redis_settings().password(), Some("secret"));
    }

    #[test]
    fn bad_addresses_are_refused_without_credentials() {
        for bad in [
            "",
            "localhost",
            "http://bob:secret@h",
            "redis://bob:secret@h:99999",
            "redis://bob:secret@h/x",
            "bob:secret@h",
            "redis://bob:se/cret@h:1:2",
            "redis://:cret#x@h:1",
            "redis://:cret?x@h",
            "redis://cret#@h",
        ] {
            let error = RedisAddress::parse(bad).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{error}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_without_the_feature_names_the_feature() {
        let error = RedisAddress::parse("rediss://h").unwrap_err().to_string();
        assert!(error.contains("`tls`"), "{error}");
    }
}
