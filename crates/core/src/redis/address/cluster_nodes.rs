//! The address of a Cluster: some of its nodes.

use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo};

use super::{
    host_list::{HostList, Kind, scheme_of},
    redis_address::{AddressError, AddressPart},
    spelling,
};
use crate::redis::place::Place;

const CLUSTER: Kind = Kind {
    suffix: "+cluster",
    port: 6379,
    twice: "",
    usual: "write redis+cluster://[user:password@]host[:port],host[:port]",
};

/// Reads the address of a Cluster, `redis+cluster://…`; `None` for another kind of address. The
/// connection's host is that of the first node.
pub(super) fn parse(
    url: &str,
    has_tls: bool,
) -> Option<Result<(ConnectionInfo, Vec<Place>), AddressError>> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme_of(scheme, &CLUSTER)?;
    Some(read(scheme, rest, has_tls))
}

fn read(
    scheme: &'static str,
    rest: &str,
    has_tls: bool,
) -> Result<(ConnectionInfo, Vec<Place>), AddressError> {
    let list = HostList::read(scheme, rest, &CLUSTER)?;
    let shown = || list.shown.clone();
    if !matches!(list.path, "" | "/" | "/0") {
        let what = "something follows the hosts, and a Cluster has no databases but 0";
        let remedy = format!("write {}", list.shown);
        return Err(AddressError::new(AddressPart::Database, shown(), what, remedy));
    }
    let is_known = |pair: &&str| pair.is_empty() || pair.starts_with("protocol=");
    if let Some(pair) = list.query.split('&').find(|pair| !is_known(pair)) {
        return Err(spelling::unknown_parameter(shown(), pair));
    }
    let info = list.first("", has_tls, &CLUSTER)?;
    let nodes = list.each("", has_tls, &CLUSTER)?;
    Ok((info, nodes.iter().filter_map(|node| Place::of(node.addr())).collect()))
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
    write!(f, "{scheme}+cluster://{}", nodes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::RedisAddress;

    fn parsed(url: &str) -> Result<(ConnectionInfo, Vec<Place>), AddressError> {
        parse(url, true).unwrap()
    }

    #[test]
    fn an_address_names_some_nodes() {
        let url = "valkey+cluster://u:p@a,b:7000,[::1]:7001/";
        let (info, nodes) = parsed(url).unwrap();
        let at = |host: &str, port| Place { host: host.into(), port };
        assert_eq!(nodes, [at("a", 6379), at("b", 7000), at("::1", 7001)]);
        assert_eq!(info.redis_settings().username(), Some("u"));
        let shown = RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+cluster://a:6379,b:7000,[::1]:7001");
        assert!(parse("redis://a,b", true).is_none());
    }

    #[test]
    fn what_is_wrong_is_named_without_credentials() {
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
            let error = parsed(bad).err().unwrap();
            assert_eq!(error.part(), part, "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("s3") && !said.contains("cret@"), "{said}");
        }
        let error = parse("rediss+cluster://a", false).unwrap().err().unwrap();
        assert_eq!(error.part(), AddressPart::Tls);
    }
}
