//! The address of a quorum: all of its nodes.

use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo};

use super::{
    host_list::{HostList, Kind, scheme_of},
    redis_address::{AddressError, AddressPart},
    spelling,
};
use crate::redis::place::Place;

const QUORUM: Kind = Kind {
    suffix: "+quorum",
    port: 6379,
    twice: ", and a node has one vote",
    usual: "write redis+quorum://[user:password@]host[:port],host[:port],host[:port][/database]",
};

/// Reads the address of a quorum, `redis+quorum://…`; `None` for another kind of address. The
/// connection's host is that of the first node.
pub(super) fn parse(
    url: &str,
    has_tls: bool,
) -> Option<Result<(ConnectionInfo, Vec<Place>), AddressError>> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme_of(scheme, &QUORUM)?;
    Some(read(scheme, rest, has_tls))
}

fn read(
    scheme: &'static str,
    rest: &str,
    has_tls: bool,
) -> Result<(ConnectionInfo, Vec<Place>), AddressError> {
    let list = HostList::read(scheme, rest, &QUORUM)?;
    let shown = || list.shown.clone();
    let db = list.path.strip_prefix('/').unwrap_or(list.path);
    if !db.is_empty() && db.parse::<u32>().is_err() {
        let what = "what follows the hosts is not the number of a database";
        return Err(AddressError::new(AddressPart::Database, shown(), what, QUORUM.usual));
    }
    let is_known = |pair: &&str| pair.is_empty() || pair.starts_with("protocol=");
    if let Some(pair) = list.query.split('&').find(|pair| !is_known(pair)) {
        return Err(spelling::unknown_parameter(shown(), pair));
    }
    let info = list.first(db, has_tls, &QUORUM)?;
    let nodes = list.each("", has_tls, &QUORUM)?;
    let nodes: Vec<_> = nodes.iter().filter_map(|node| Place::of(node.addr())).collect();
    if !matches!(nodes.len(), 3 | 5 | 7) {
        let what = format!("a quorum has 3, 5 or 7 nodes, and {} are named", nodes.len());
        let remedy = "name all nodes of the group; a fourth or sixth one makes it no safer";
        return Err(AddressError::new(AddressPart::Host, shown(), what, remedy));
    }
    Ok((info, nodes))
}

/// Shows the nodes.
pub(super) fn fmt(
    f: &mut fmt::Formatter<'_>,
    info: &ConnectionInfo,
    nodes: &[Place],
) -> fmt::Result {
    let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let scheme = if is_tls { "rediss" } else { "redis" };
    let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    write!(f, "{scheme}+quorum://{}/{}", nodes.join(","), info.redis_settings().db())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::RedisAddress;

    fn parsed(url: &str) -> Result<(ConnectionInfo, Vec<Place>), AddressError> {
        parse(url, true).unwrap()
    }

    #[test]
    fn an_address_names_all_nodes() {
        let url = "valkey+quorum://u:p@a,b:7000,[::1]:7001/2";
        let (info, nodes) = parsed(url).unwrap();
        let at = |host: &str, port| Place { host: host.into(), port };
        assert_eq!(nodes, [at("a", 6379), at("b", 7000), at("::1", 7001)]);
        assert_eq!(info.redis_settings().username(), Some("u"));
        assert_eq!(info.redis_settings().db(), 2);
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+quorum://a:6379,b:7000,[::1]:7001/2");
        assert!(parse("redis://a,b,c", true).is_none());
    }

    #[test]
    fn what_is_wrong_is_named_without_credentials() {
        for (bad, part) in [
            ("redis+quorum://u:s3cret@a,b,c/x", AddressPart::Database),
            ("redis+quorum://u:s3cret@a,,b", AddressPart::Host),
            ("redis+quorum://u:s3cret@a,b", AddressPart::Host),
            ("redis+quorum://u:s3cret@a,b,c,d", AddressPart::Host),
            ("redis+quorum://u:s3cret@a,b,a:6379", AddressPart::Host),
            ("redis+quorum://a,b,c?foo=s3cret", AddressPart::Parameter),
            ("redis+quorum://u:s3/cret@a,b,c", AddressPart::Login),
        ] {
            let error = parsed(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
        let error = parse("rediss+quorum://a,b,c", false).unwrap().err().unwrap();
        assert_eq!(error.part(), AddressPart::Tls);
    }
}
