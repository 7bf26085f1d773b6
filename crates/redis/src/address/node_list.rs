//! The address of a Cluster, by some of its nodes, and of a quorum, by all of them.

use redis::{ConnectionAddr, ConnectionInfo};

use super::{
    error::{AddressError, AddressPart},
    host_list::{HostList, ListKind, scheme_of},
    spelling,
};
use crate::endpoint::Endpoint;

const CLUSTER: ListKind = ListKind {
    suffix: "+cluster",
    port: 6379,
    twice: "",
    usual: "write redis+cluster://[user:password@]host[:port],host[:port]",
};

const QUORUM: ListKind = ListKind {
    suffix: "+quorum",
    port: 6379,
    twice: ", and a node has one vote",
    usual: "write redis+quorum://[user:password@]host[:port],host[:port],host[:port][/database]",
};

/// How to connect to the first node, and where all of the named ones are.
type ListedNodes = Result<(ConnectionInfo, Vec<Endpoint>), AddressError>;

/// Reads the address of a Cluster, `redis+cluster://…`; `None` for another kind of address.
pub(super) fn cluster(url: &str, has_tls: bool) -> Option<ListedNodes> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme_of(scheme, &CLUSTER)?;
    Some(HostList::read(scheme, rest, &CLUSTER).and_then(|list| {
        if matches!(list.path, "" | "/" | "/0") {
            return nodes(&list, "", has_tls, &CLUSTER);
        }
        let what = "something follows the hosts, and a Cluster has no databases but 0";
        let remedy = format!("write {}", list.shown);
        Err(AddressError::new(AddressPart::Database, &*list.shown, what, remedy))
    }))
}

/// Reads the address of a quorum, `redis+quorum://…`; `None` for another kind of address.
pub(super) fn quorum(url: &str, has_tls: bool) -> Option<ListedNodes> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme_of(scheme, &QUORUM)?;
    Some(HostList::read(scheme, rest, &QUORUM).and_then(|list| {
        let db = list.path.strip_prefix('/').unwrap_or(list.path);
        if !db.is_empty() && db.parse::<u32>().is_err() {
            let what = "what follows the hosts is not the number of a database";
            return Err(AddressError::new(AddressPart::Database, list.shown, what, QUORUM.usual));
        }
        let (info, nodes) = nodes(&list, db, has_tls, &QUORUM)?;
        if !matches!(nodes.len(), 3 | 5 | 7) {
            let what = format!("a quorum has 3, 5 or 7 nodes, and {} are named", nodes.len());
            let remedy = "name all nodes of the group; a fourth or sixth one makes it no safer";
            return Err(AddressError::new(AddressPart::Host, list.shown, what, remedy));
        }
        Ok((info, nodes))
    }))
}

fn nodes(list: &HostList<'_>, db: &str, has_tls: bool, kind: &ListKind) -> ListedNodes {
    let is_known = |pair: &&str| pair.is_empty() || pair.starts_with("protocol=");
    if let Some(pair) = list.query.split('&').find(|pair| !is_known(pair)) {
        return Err(spelling::unknown_parameter(list.shown.clone(), pair));
    }
    let info = list.first(db, has_tls, kind)?;
    let nodes = list.each("", has_tls, kind)?;
    Ok((info, nodes.iter().filter_map(|node| Endpoint::of(node.addr())).collect()))
}

/// The nodes as text, behind the scheme of a list of such a kind.
pub(super) fn shown(kind: &str, info: &ConnectionInfo, nodes: &[Endpoint]) -> String {
    let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let scheme = if is_tls { "rediss" } else { "redis" };
    let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    format!("{scheme}+{kind}://{}", nodes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisAddress;

    fn parsed_cluster(url: &str) -> ListedNodes {
        cluster(url, true).unwrap()
    }

    fn parsed_quorum(url: &str) -> ListedNodes {
        quorum(url, true).unwrap()
    }

    #[test]
    fn an_address_names_some_nodes_of_a_cluster() {
        let url = "valkey+cluster://u:p@a,b:7000,[::1]:7001/";
        let (info, nodes) = parsed_cluster(url).unwrap();
        let at = |host: &str, port| Endpoint { host: host.into(), port };
        assert_eq!(nodes, [at("a", 6379), at("b", 7000), at("::1", 7001)]);
        assert_eq!(info.redis_settings().username(), Some("u"));
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+cluster://a:6379,b:7000,[::1]:7001");
        assert!(cluster("redis://a,b", true).is_none());
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
            let error = parsed_cluster(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
        let error = cluster("rediss+cluster://a", false).unwrap().err().unwrap();
        assert_eq!(error.part(), AddressPart::Tls);
    }

    #[test]
    fn an_address_names_all_nodes_of_a_quorum() {
        let url = "valkey+quorum://u:p@a,b:7000,[::1]:7001/2";
        let (info, nodes) = parsed_quorum(url).unwrap();
        let at = |host: &str, port| Endpoint { host: host.into(), port };
        assert_eq!(nodes, [at("a", 6379), at("b", 7000), at("::1", 7001)]);
        assert_eq!(info.redis_settings().username(), Some("u"));
        assert_eq!(info.redis_settings().db(), 2);
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+quorum://a:6379,b:7000,[::1]:7001/2");
        assert!(quorum("redis://a,b,c", true).is_none());
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
            let error = parsed_quorum(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
        let error = quorum("rediss+quorum://a,b,c", false).unwrap().err().unwrap();
        assert_eq!(error.part(), AddressPart::Tls);
    }
}
