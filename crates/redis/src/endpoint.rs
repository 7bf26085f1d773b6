use std::fmt;

use leasehold_core::printable;
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, RedisError};

/// Where a server listens, as a Sentinel or another server tells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Its name or its address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Endpoint {
    /// Reads `host:port`; `None` for anything else. Where the host is missing, or `?` as of a node
    /// that does not know its own name, the server is at the host of the one that told of it.
    pub(super) fn read(text: &str, teller: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if matches!(host, "" | "?") { &teller.host } else { host };
        Some(Self { host: host.into(), port: port.parse().ok().filter(|port| *port > 0)? })
    }

    /// The endpoint of a server that listens on TCP.
    pub fn of(addr: &ConnectionAddr) -> Option<Self> {
        let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) = addr
        else {
            return None;
        };
        Some(Self { host: host.clone(), port: *port })
    }

    /// How to connect there: as `template` says, but for its endpoint.
    pub(super) fn info(&self, template: &ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        let Self { host, port } = self.clone();
        let addr = match template.addr() {
            ConnectionAddr::Tcp(..) => ConnectionAddr::Tcp(host, port),
            ConnectionAddr::TcpTls { insecure, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: None }
            }
            _ => {
                let what = "servers tell of each other by host and port";
                return Err((ErrorKind::InvalidClientConfig, what).into());
            }
        };
        Ok(template.clone().set_addr(addr))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Host(&self.host), self.port)
    }
}

/// A host before a port: an IPv6 address has brackets.
pub(super) struct Host<'a>(pub(super) &'a str);

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = printable(self.0);
        if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(&host) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_host_and_port() {
        let teller = Endpoint { host: "t".into(), port: 1 };
        let read =
            |text| Endpoint::read(text, &teller).map(|endpoint| (endpoint.host, endpoint.port));
        assert_eq!(read("10.0.0.1:7000"), Some(("10.0.0.1".into(), 7000)));
        assert_eq!(read("2001:db8::1:7000"), Some(("2001:db8::1".into(), 7000)));
        assert_eq!(read(":7000"), Some(("t".into(), 7000)));
        assert_eq!(read("?:7000"), Some(("t".into(), 7000)));
        assert_eq!([read("h:0"), read("h"), read("h:x")], [None, None, None]);
    }

    #[test]
    fn an_ipv6_address_is_shown_in_brackets() {
        let shown = |host: &str| Endpoint { host: host.into(), port: 7000 }.to_string();
        assert_eq!([shown("::1"), shown("h")], ["[::1]:7000", "h:7000"]);
    }
}
