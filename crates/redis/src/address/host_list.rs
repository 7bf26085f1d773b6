use redis::{ConnectionInfo, IntoConnectionInfo};

use super::{
    error::{AddressError, AddressPart},
    spelling,
};

/// A text `scheme://[login@]host[:port],host[:port]…` that is taken apart.
pub(super) struct HostList<'a> {
    /// The scheme of each server.
    scheme: &'static str,
    /// With the `@`; percent-encoded.
    login: &'a str,
    /// Each with its port.
    pub(super) hosts: Vec<String>,
    /// The whole without the login and what follows the hosts.
    pub(super) shown: String,
    /// What stands between the hosts and the `?`.
    pub(super) path: &'a str,
    /// What stands behind the `?`.
    pub(super) query: &'a str,
}

/// What the servers of a list are, where an error names one.
pub(super) struct ListKind {
    /// What a scheme of such a list ends in.
    pub(super) suffix: &'static str,
    /// The port of a host without one.
    pub(super) port: u16,
    /// What is wrong with a host that is listed twice, after its name.
    pub(super) twice: &'static str,
    pub(super) usual: &'static str,
}

/// The scheme of each server, behind the scheme of a list of such a kind.
pub(super) fn scheme_of(scheme: &str, kind: &ListKind) -> Option<&'static str> {
    let scheme = scheme.to_ascii_lowercase();
    match scheme.strip_suffix(kind.suffix)? {
        "redis" | "valkey" => Some("redis"),
        "rediss" | "valkeys" => Some("rediss"),
        _ => None,
    }
}

impl<'a> HostList<'a> {
    /// Takes what stands behind the `://` apart.
    pub(super) fn read(
        scheme: &'static str,
        rest: &'a str,
        kind: &ListKind,
    ) -> Result<Self, AddressError> {
        let list = format!("{scheme}{}", kind.suffix);
        let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // What looks like the end of the hosts ends a password.
        if let Some(mark) = after.chars().next().filter(|_| after.contains('@')) {
            return Err(spelling::unencoded(format!("{list}://…"), mark));
        }
        let (login, listed) = authority.rsplit_once('@').map_or(("", authority), |(_, hosts)| {
            authority.split_at(authority.len() - hosts.len())
        });
        let shown = format!("{list}://{listed}");
        let (path, query) = after.split_once('?').unwrap_or((after, ""));
        let port = kind.port;
        let with_port =
            |host: &str| if has_port(host) { host.into() } else { format!("{host}:{port}") };
        let mut hosts: Vec<String> = Vec::new();
        for host in listed.split(',').map(with_port) {
            if hosts.contains(&host) {
                let what = format!("{host} is listed twice{}", kind.twice);
                return Err(AddressError::new(
                    AddressPart::Host,
                    shown,
                    what,
                    "list each one once",
                ));
            }
            hosts.push(host);
        }
        Ok(Self { scheme, login, hosts, shown, path, query })
    }

    /// How to connect to the first of them, with the login of the list.
    pub(super) fn first(&self, db: &str, has_tls: bool, kind: &ListKind) -> FirstHost {
        self.connect(self.login, &format!("{}/{db}", self.hosts[0]), has_tls, kind)
    }

    /// How to connect to each of them, with another login.
    pub(super) fn each(
        &self,
        login: &str,
        has_tls: bool,
        kind: &ListKind,
    ) -> Result<Vec<ConnectionInfo>, AddressError> {
        self.hosts.iter().map(|host| self.connect(login, host, has_tls, kind)).collect()
    }

    fn connect(&self, login: &str, host: &str, has_tls: bool, kind: &ListKind) -> FirstHost {
        let url = format!("{}://{login}{host}", self.scheme);
        let shown = spelling::check(&url, has_tls)?;
        url.into_connection_info().map_err(|error| {
            AddressError::new(AddressPart::Other, shown, error.category().to_owned(), kind.usual)
        })
    }
}

type FirstHost = Result<ConnectionInfo, AddressError>;

fn has_port(host: &str) -> bool {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.contains(':')
}
