use std::{
    fmt::Write,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// Where a server listens for its users; its test always reaches it through the unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    /// The unix socket alone.
    Unix,
    /// A port of 127.0.0.1.
    Tcp(u16),
    /// A port of 127.0.0.1 of a node of a Cluster, which takes the port that is [`BUS`] above, too.
    Node(u16),
    /// A port of 127.0.0.1 that speaks TLS only.
    Tls(u16),
    /// The same of a node of a Cluster.
    TlsNode(u16),
}

impl Address {
    /// The same kind of address on a port that is free at the moment.
    pub(super) fn on_free_port(self) -> Self {
        match self {
            Self::Unix => Self::Unix,
            Self::Tcp(_) => Self::Tcp(free_port()),
            Self::Node(_) => Self::Node(free_node_port()),
            Self::Tls(_) => Self::Tls(free_port()),
            Self::TlsNode(_) => Self::TlsNode(free_node_port()),
        }
    }

    /// The port, if there is one.
    pub(crate) fn port(self) -> Option<u16> {
        match self {
            Self::Unix => None,
            Self::Tcp(port) | Self::Node(port) | Self::Tls(port) | Self::TlsNode(port) => {
                Some(port)
            }
        }
    }

    /// Whether it speaks TLS.
    pub(super) fn is_tls(self) -> bool {
        matches!(self, Self::Tls(_) | Self::TlsNode(_))
    }

    /// Whether it is that of a node of a Cluster.
    pub(super) fn is_node(self) -> bool {
        matches!(self, Self::Node(_) | Self::TlsNode(_))
    }

    /// The address as redis-rs and Leasehold read it; an empty user or password is left out.
    pub(crate) fn url(self, socket: &Path, user: &str, password: &str, db: u32) -> String {
        let (user, password) = (encoded(user), encoded(password));
        let (scheme, port) = match self {
            Self::Unix => return unix_url(socket, &user, &password, db),
            Self::Tcp(port) | Self::Node(port) => ("redis", port),
            Self::Tls(port) | Self::TlsNode(port) => ("rediss", port),
        };
        let login = match (user.as_str(), password.as_str()) {
            ("", "") => String::new(),
            (user, "") => format!("{user}@"),
            (user, password) => format!("{user}:{password}@"),
        };
        let db = if db == 0 { String::new() } else { format!("/{db}") };
        format!("{scheme}://{login}127.0.0.1:{port}{db}")
    }
}

/// The address of a unix socket.
fn unix_url(socket: &Path, user: &str, password: &str, db: u32) -> String {
    let mut url = format!("redis+unix://{}", socket.display());
    let db = if db == 0 { String::new() } else { db.to_string() };
    let pairs = [("db", db.as_str()), ("user", user), ("pass", password)];
    for (i, (key, value)) in pairs.iter().filter(|(_, value)| !value.is_empty()).enumerate() {
        // Writing to a String never fails.
        let _ = write!(url, "{}{key}={value}", if i == 0 { '?' } else { '&' });
    }
    url
}

/// Ports that no system gives to outgoing connections: a client that redials a server while it is
/// down would sooner or later be given the server's own port, and be connected to itself.
const PORTS: Range<u16> = 12_000..32_000;

/// How far above its own port a node of a Cluster listens for the other nodes.
const BUS: u16 = 10_000;

/// A port that was free a moment ago; another process may take it first.
pub(crate) fn free_port() -> u16 {
    free_port_in(PORTS, is_free)
}

/// The same of a node of a Cluster: other nodes redial its second port while it is down.
fn free_node_port() -> u16 {
    free_port_in(PORTS.start..PORTS.end - BUS, |port| is_free(port) && is_free(port + BUS))
}

fn free_port_in(ports: Range<u16>, is_free: impl Fn(u16) -> bool) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(ports.end - ports.start);
    // Processes that test at the same time begin in different places.
    let first = process::id().wrapping_mul(7_919);
    (0..count)
        .filter_map(|_| {
            let step = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
            u16::try_from(u32::from(ports.start) + step).ok()
        })
        .find(|port| is_free(*port))
        .expect("127.0.0.1 has a free port")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Percent-encodes everything that could mean something in a URL.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut url, byte| {
        let _ = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                url.write_char(char::from(byte))
            }
            _ => write!(url, "%{byte:02X}"),
        };
        url
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_carry_logins_and_databases() {
        let socket = Path::new("/tmp/lh-x/s");
        assert_eq!(Address::Unix.url(socket, "", "", 0), "redis+unix:///tmp/lh-x/s");
        assert_eq!(
            Address::Unix.url(socket, "u", "p&", 3),
            "redis+unix:///tmp/lh-x/s?db=3&user=u&pass=p%26"
        );
        assert_eq!(Address::Tcp(7).url(socket, "", "", 0), "redis://127.0.0.1:7");
        assert_eq!(Address::Tcp(7).url(socket, "", "p@", 2), "redis://:p%40@127.0.0.1:7/2");
        assert_eq!(Address::Tls(7).url(socket, "u", "p", 0), "rediss://u:p@127.0.0.1:7");
    }

    #[test]
    fn both_ports_of_a_node_are_out_of_the_reach_of_connections() {
        for _ in 0..100 {
            let port = free_node_port();
            assert!(PORTS.contains(&port) && PORTS.contains(&(port + BUS)), "{port}");
        }
    }
}
