//! The addresses that list servers: the Sentinels of a master, some nodes of a Cluster, or all of a quorum.

use std::borrow::Cow;

use redis::{ConnectionAddr, ConnectionInfo};

use super::{
    error::{AddressError, AddressPart},
    spelling,
};
use crate::endpoint::Endpoint;

/// Which servers an address leads to.
#[derive(Clone)]
pub(super) enum Servers {
    One,
    /// The master that these Sentinels name.
    Master(SentinelGroup),
    /// All masters of the Cluster that these nodes belong to.
    Cluster(Vec<Endpoint>),
    /// These masters, none of which knows of the others.
    Quorum(Vec<Endpoint>),
}

/// The Sentinels that know where a master is, and how to log in there.
#[derive(Clone)]
pub struct SentinelGroup {
    /// The addresses of the Sentinels.
    pub sentinels: Vec<ConnectionInfo>,
    /// The name under which they watch the master.
    pub master: String,
}

/// How to connect to the first server, or to what the servers lead to; and the servers.
type ListedServers = Result<(ConnectionInfo, Servers), AddressError>;

/// What the servers of a list are.
struct ListKind {
    /// What stands behind `redis+` or `rediss+`.
    name: &'static str,
    /// The port of a host without one.
    port: u16,
    /// What is wrong with a host that is listed twice, after its name.
    twice: &'static str,
    usual: &'static str,
    servers: fn(&HostList<'_>) -> ListedServers,
}

const KINDS: [ListKind; 3] = [
    ListKind {
        name: "sentinel",
        port: 26379,
        twice: ", and would have two votes",
        usual: "write redis+sentinel://[user:password@]host[:port],host[:port]/master[/db]",
        servers: sentinels,
    },
    ListKind {
        name: "cluster",
        port: 6379,
        twice: "",
        usual: "write redis+cluster://[user:password@]host[:port],host[:port]",
        servers: cluster,
    },
    ListKind {
        name: "quorum",
        port: 6379,
        twice: ", and a node has one vote",
        usual: "write redis+quorum://[user:password@]host[:port],host[:port],host[:port][/database]",
        servers: quorum,
    },
];

/// Reads the address of a list, such as `redis+sentinel://…`; `None` for another kind of address.
pub(super) fn parse(url: &str) -> Option<ListedServers> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (scheme, name) = scheme.split_once('+')?;
    let kind = KINDS.iter().find(|kind| kind.name == name)?;
    let scheme = match scheme {
        "redis" | "valkey" => "redis",
        "rediss" | "valkeys" => "rediss",
        _ => return None,
    };
    Some(HostList::read(scheme, rest, kind).and_then(|list| (kind.servers)(&list)))
}

/// The servers as text, behind the scheme of a list of such a kind.
pub(super) fn shown(kind: &str, info: &ConnectionInfo, servers: &[Endpoint]) -> String {
    let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let scheme = if is_tls { "rediss" } else { "redis" };
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    format!("{scheme}+{kind}://{}", servers.join(","))
}

/// A text `scheme://[login@]host[:port],host[:port]…` that is taken apart.
struct HostList<'a> {
    kind: &'static ListKind,
    /// The scheme of each server.
    scheme: &'static str,
    /// With the `@`; percent-encoded.
    login: &'a str,
    /// The hosts as they are written.
    listed: &'a str,
    /// Each with its port.
    hosts: Vec<String>,
    /// The whole without the login and what follows the hosts.
    shown: String,
    /// What stands between the hosts and the `?`.
    path: &'a str,
    /// What stands behind the `?`.
    query: &'a str,
}

impl<'a> HostList<'a> {
    /// Takes what stands behind the `://` apart.
    fn read(
        scheme: &'static str,
        rest: &'a str,
        kind: &'static ListKind,
    ) -> Result<Self, AddressError> {
        let list = format!("{scheme}+{}", kind.name);
        let (authority, after) = spelling::authority(&list, rest)?;
        let (login, listed) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let shown = format!("{list}://{listed}");
        let (path, query) = after.split_once('?').unwrap_or((after, ""));
        let mut hosts: Vec<String> = Vec::new();
        for host in listed.split(',') {
            let has_port = host.rsplit_once(']').map_or(host, |(_, after)| after).contains(':');
            let host = if has_port { host.into() } else { format!("{host}:{}", kind.port) };
            if hosts.contains(&host) {
                let what = format!("{host} is listed twice{}", kind.twice);
                let remedy = "list each one once";
                return Err(AddressError::new(AddressPart::Host, shown, what, remedy));
            }
            hosts.push(host);
        }
        Ok(Self { kind, scheme, login, listed, hosts, shown, path, query })
    }

    /// How to connect to the first of them, with the login of the list.
    fn first(&self, db: &str) -> Result<ConnectionInfo, AddressError> {
        self.connect(self.login, &format!("{}/{db}", self.hosts[0]))
    }

    /// How to connect to each of them, with another login.
    fn each(&self, login: &str) -> Result<Vec<ConnectionInfo>, AddressError> {
        self.hosts.iter().map(|host| self.connect(login, host)).collect()
    }

    fn connect(&self, login: &str, host: &str) -> Result<ConnectionInfo, AddressError> {
        let address = format!("{}://{login}{host}", self.scheme);
        spelling::read(&address, self.kind.usual).map_err(|error| {
            // What a host of the list is shown as: nothing in the place of a port that may be a password.
            let hosts: Vec<_> = self.listed.split(',').map(spelling::host_alone).collect();
            let shown = format!("{}+{}://{}", self.scheme, self.kind.name, hosts.join(","));
            error.in_list(shown, self.kind.usual)
        })
    }

    /// The first node of several, and where all are.
    fn nodes(&self, db: &str) -> Result<(ConnectionInfo, Vec<Endpoint>), AddressError> {
        let is_known = |pair: &&str| pair.is_empty() || pair.starts_with("protocol=");
        if let Some(pair) = self.query.split('&').find(|pair| !is_known(pair)) {
            return Err(spelling::unknown_parameter(self.shown.clone(), pair));
        }
        let (info, nodes) = (self.first(db)?, self.each("")?);
        Ok((info, nodes.iter().filter_map(|node| Endpoint::of(node.addr())).collect()))
    }

    fn error(
        &self,
        part: AddressPart,
        what: impl Into<Cow<'static, str>>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> AddressError {
        AddressError::new(part, &*self.shown, what, remedy)
    }
}

fn cluster(list: &HostList<'_>) -> ListedServers {
    if !matches!(list.path, "" | "/" | "/0") {
        let what = "something follows the hosts, and a Cluster has no databases but 0";
        let remedy = format!("write {}", list.shown);
        return Err(list.error(AddressPart::Database, what, remedy));
    }
    list.nodes("").map(|(info, nodes)| (info, Servers::Cluster(nodes)))
}

fn quorum(list: &HostList<'_>) -> ListedServers {
    let db = list.path.strip_prefix('/').unwrap_or(list.path);
    if !db.is_empty() && db.parse::<u32>().is_err() {
        let what = "what follows the hosts is not the number of a database";
        return Err(list.error(AddressPart::Database, what, list.kind.usual));
    }
    let (info, nodes) = list.nodes(db)?;
    if !matches!(nodes.len(), 3 | 5 | 7) {
        let what = format!("a quorum has 3, 5 or 7 nodes, and {} are named", nodes.len());
        let remedy = "name all nodes of the group; a fourth or sixth one makes it no safer";
        return Err(list.error(AddressPart::Host, what, remedy));
    }
    Ok((info, Servers::Quorum(nodes)))
}

fn sentinels(list: &HostList<'_>) -> ListedServers {
    let path = list.path.trim_matches('/');
    let (master, db) = path.split_once('/').unwrap_or((path, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    if master.is_empty() || !master.chars().all(is_plain) {
        let what = if master.is_empty() {
            "the name of the master is missing".to_owned()
        } else {
            format!("the name of the master `{master}` has a character that Sentinels refuse")
        };
        let remedy = format!("write {}/mymaster, as `sentinel monitor` names it", list.shown);
        return Err(list.error(AddressPart::Master, what, remedy));
    }
    let sentinels = list.each(&sentinel_login(list)?)?;
    // Its host is only a place holder.
    let info = list.first(db)?;
    Ok((info, Servers::Master(SentinelGroup { sentinels, master: master.into() })))
}

/// User and password of the Sentinels themselves, percent-encoded, with the `@`.
fn sentinel_login(list: &HostList<'_>) -> Result<String, AddressError> {
    let (mut user, mut password) = ("", None);
    for pair in list.query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sentinel_user", value)) => user = value,
            Some(("sentinel_pass", value)) => password = Some(value),
            Some(("protocol", _)) => {}
            _ => return Err(spelling::unknown_parameter(list.shown.clone(), pair)),
        }
    }
    if password.is_none() && !user.is_empty() {
        let what = "the Sentinels have a user and no password";
        let remedy = "write ?sentinel_user=…&sentinel_pass=…, or sentinel_pass alone";
        return Err(list.error(AddressPart::Login, what, remedy));
    }
    Ok(password.map(|password| format!("{user}:{password}@")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisAddress;

    fn read(url: &str) -> ListedServers {
        parse(url).expect("the address of a list")
    }

    fn nodes(url: &str) -> (ConnectionInfo, Vec<Endpoint>) {
        match read(url).unwrap() {
            (info, Servers::Cluster(nodes) | Servers::Quorum(nodes)) => (info, nodes),
            _ => panic!("{url} names no nodes"),
        }
    }

    #[test]
    fn another_kind_of_address_is_no_list() {
        for url in ["redis://a,b,c", "redis+unix:///a", "http+cluster://a", "redis+x+cluster://a"] {
            assert!(parse(url).is_none(), "{url}");
        }
    }

    #[test]
    fn an_address_names_some_nodes_of_a_cluster() {
        let url = "valkey+cluster://u:p@a,b:7000,[::1]:7001/";
        let (info, nodes) = nodes(url);
        let at = |host: &str, port| Endpoint { host: host.into(), port };
        assert_eq!(nodes, [at("a", 6379), at("b", 7000), at("::1", 7001)]);
        assert_eq!(info.redis_settings().username(), Some("u"));
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+cluster://a:6379,b:7000,[::1]:7001");
    }

    #[test]
    fn what_is_wrong_with_a_cluster_is_named_without_credentials() {
        for (bad, part) in [
            ("redis+cluster://u:s3cret@a,b/1", AddressPart::Database),
            ("redis+cluster://u:s3cret@a,,b", AddressPart::Host),
            ("redis+cluster://u:s3cret@a:0", AddressPart::Port),
            ("redis+cluster://u:s3cret@", AddressPart::Host),
            ("redis+cluster://a?foo=s3cret", AddressPart::Parameter),
            ("redis+cluster://u:s3cret@a,b,a:6379", AddressPart::Host),
            ("redis+cluster://u:s3/cret@a,b", AddressPart::Login),
            ("redis+cluster://a#s3cret", AddressPart::Database),
        ] {
            let error = read(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
    }

    #[test]
    fn an_address_names_all_nodes_of_a_quorum() {
        let url = "valkey+quorum://u:p@a,b:7000,[::1]:7001/2";
        let (info, nodes) = nodes(url);
        let at = |host: &str, port| Endpoint { host: host.into(), port };
        assert_eq!(nodes, [at("a", 6379), at("b", 7000), at("::1", 7001)]);
        assert_eq!(info.redis_settings().username(), Some("u"));
        assert_eq!(info.redis_settings().db(), 2);
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+quorum://a:6379,b:7000,[::1]:7001/2");
    }

    #[test]
    fn what_is_wrong_with_a_quorum_is_named_without_credentials() {
        for (bad, part) in [
            ("redis+quorum://u:s3cret@a,b,c/x", AddressPart::Database),
            ("redis+quorum://u:s3cret@a,,b", AddressPart::Host),
            ("redis+quorum://u:s3cret@a,b", AddressPart::Host),
            ("redis+quorum://u:s3cret@a,b,c,d", AddressPart::Host),
            ("redis+quorum://u:s3cret@a,b,a:6379", AddressPart::Host),
            ("redis+quorum://a,b,c?foo=s3cret", AddressPart::Parameter),
            ("redis+quorum://u:s3/cret@a,b,c", AddressPart::Login),
        ] {
            let error = read(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
    }

    #[test]
    fn every_part_of_the_address_of_a_group_is_read() {
        let url =
            "redis+sentinel://app:s%40@a,b:7,[::1]/orders-1/3?sentinel_user=s&sentinel_pass=%2B";
        let (info, Servers::Master(group)) = read(url).unwrap() else { panic!("no group") };
        assert_eq!(info.redis_settings().password(), Some("s@"));
        assert_eq!((info.redis_settings().db(), &*group.master), (3, "orders-1"));
        let hosts: Vec<_> = group.sentinels.iter().map(|one| one.addr().to_string()).collect();
        assert_eq!(hosts, ["a:26379", "b:7", "::1:26379"]);
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+sentinel://a:26379,b:7,[::1]:26379/orders-1/3");
        for sentinel in &group.sentinels {
            let settings = sentinel.redis_settings();
            assert_eq!((settings.username(), settings.password()), (Some("s"), Some("+")));
            assert_eq!(settings.db(), 0);
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_is_that_of_all() {
        let read = read("rediss+sentinel://a,b/m").unwrap();
        let (info, Servers::Master(group)) = read else { panic!("no group") };
        let is_tls = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        assert!(is_tls(&info) && group.sentinels.iter().all(is_tls));
    }

    #[test]
    fn what_is_wrong_with_a_group_is_named_without_credentials() {
        for (bad, part) in [
            ("redis+sentinel://u:s3cret@a,b", AddressPart::Master),
            ("redis+sentinel://u:s3cret@a,b/my master", AddressPart::Master),
            ("redis+sentinel://u:s3cret@a,,b/m", AddressPart::Host),
            ("redis+sentinel://u:s3cret@a:0/m", AddressPart::Port),
            ("redis+sentinel://u:s3cret@a/m/x", AddressPart::Database),
            ("redis+sentinel://a/m?sentinel_user=s3cret", AddressPart::Login),
            ("redis+sentinel://a/m?foo=s3cret", AddressPart::Parameter),
            ("redis+sentinel://u:s3cret@a,b:26379,b/m", AddressPart::Host),
            ("redis+sentinel://u:s3/cret@a,b/m", AddressPart::Login),
            ("redis+sentinel://u:s3?cret@a,b/m", AddressPart::Login),
            ("redis+sentinel://u:s3#cret@a,b/m", AddressPart::Login),
            ("redis+sentinel://u:s3%FFcret@a,b/m", AddressPart::Login),
            ("redis+sentinel://a/m?sentinel_pass=s3#cret", AddressPart::Login),
            ("redis+sentinel://a/m?sentinel_pass=s3/cret", AddressPart::Login),
            ("redis+sentinel://a/m?sentinel_pass=s3&cret=1", AddressPart::Parameter),
            ("redis+sentinel://a/m#cret", AddressPart::Master),
        ] {
            let error = read(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
    }
}
