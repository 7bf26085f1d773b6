use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo};

use super::{
    error::{AddressError, AddressPart},
    host_list::{HostList, ListKind, scheme_of},
    spelling,
};
use crate::endpoint::Endpoint;

/// The Sentinels that know where a master is, and how to log in there.
#[derive(Clone)]
pub struct SentinelGroup {
    /// The addresses of the Sentinels.
    pub sentinels: Vec<ConnectionInfo>,
    /// The name under which they watch the master.
    pub master: String,
}

impl SentinelGroup {
    /// Whether one of the Sentinels needs a password.
    pub(super) fn has_password(&self) -> bool {
        self.sentinels.iter().any(|one| one.redis_settings().password().is_some())
    }

    /// Shows the group, and the number of the database.
    pub(super) fn fmt(&self, f: &mut fmt::Formatter<'_>, db: i64) -> fmt::Result {
        let is_tls =
            self.sentinels.iter().any(|one| matches!(one.addr(), ConnectionAddr::TcpTls { .. }));
        let scheme = if is_tls { "rediss" } else { "redis" };
        let places = self.sentinels.iter().filter_map(|one| Endpoint::of(one.addr()));
        let hosts: Vec<_> = places.map(|place| place.to_string()).collect();
        write!(f, "{scheme}+sentinel://{}/{}/{db}", hosts.join(","), self.master)
    }
}

const SENTINELS: ListKind = ListKind {
    suffix: "+sentinel",
    port: 26379,
    twice: ", and would have two votes",
    usual: "write redis+sentinel://[user:password@]host[:port],host[:port]/master[/db]",
};

/// Reads the address of a master that Sentinels name, `redis+sentinel://…`; `None` for another
/// kind of address. The connection's host is that of the first Sentinel.
pub(super) fn parse(
    url: &str,
    has_tls: bool,
) -> Option<Result<(ConnectionInfo, SentinelGroup), AddressError>> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme_of(scheme, &SENTINELS)?;
    Some(read(scheme, rest, has_tls))
}

fn read(
    scheme: &'static str,
    rest: &str,
    has_tls: bool,
) -> Result<(ConnectionInfo, SentinelGroup), AddressError> {
    let list = HostList::read(scheme, rest, &SENTINELS)?;
    let (master, db) = split_path(&list.shown, list.path)?;
    let login = SentinelLogin::read(&list.shown, list.query)?;
    let sentinels = list.each(&login.before_host(), has_tls, &SENTINELS)?;
    // Its host is only a place holder.
    let info = list.first(db, has_tls, &SENTINELS)?;
    Ok((info, SentinelGroup { sentinels, master }))
}

/// The name of the master, and the database.
fn split_path<'a>(shown: &str, path: &'a str) -> Result<(String, &'a str), AddressError> {
    let path = path.trim_matches('/');
    let (master, db) = path.split_once('/').unwrap_or((path, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    if master.is_empty() || !master.chars().all(is_plain) {
        let what = if master.is_empty() {
            "the name of the master is missing".to_owned()
        } else {
            format!("the name of the master `{master}` has a character that Sentinels refuse")
        };
        let remedy = format!("write {shown}/mymaster, as `sentinel monitor` names it");
        return Err(AddressError::new(AddressPart::Master, shown, what, remedy));
    }
    Ok((master.into(), db))
}

/// User and password of the Sentinels themselves, percent-encoded.
#[derive(Default)]
struct SentinelLogin<'a> {
    user: &'a str,
    password: Option<&'a str>,
}

impl<'a> SentinelLogin<'a> {
    fn read(shown: &str, query: &'a str) -> Result<Self, AddressError> {
        let mut login = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sentinel_user", user)) => login.user = user,
                Some(("sentinel_pass", password)) => login.password = Some(password),
                Some(("protocol", _)) => {}
                _ => return Err(spelling::unknown_parameter(shown.into(), pair)),
            }
        }
        if login.password.is_none() && !login.user.is_empty() {
            let what = "the Sentinels have a user and no password";
            let remedy = "write ?sentinel_user=…&sentinel_pass=…, or sentinel_pass alone";
            return Err(AddressError::new(AddressPart::Login, shown, what, remedy));
        }
        Ok(login)
    }

    fn before_host(&self) -> String {
        let Self { user, password } = self;
        password.map(|password| format!("{user}:{password}@")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(ConnectionInfo, SentinelGroup), AddressError> {
        parse(url, true).expect("the address of a group")
    }

    #[test]
    fn every_part_is_read() {
        let url =
            "redis+sentinel://app:s%40@a,b:7,[::1]/orders-1/3?sentinel_user=s&sentinel_pass=%2B";
        let (info, group) = read(url).unwrap();
        assert_eq!(info.redis_settings().password(), Some("s@"));
        assert_eq!((info.redis_settings().db(), &*group.master), (3, "orders-1"));
        let hosts: Vec<_> = group.sentinels.iter().map(|one| one.addr().to_string()).collect();
        assert_eq!(hosts, ["a:26379", "b:7", "::1:26379"]);
        let shown = crate::RedisAddress::parse(url).unwrap().to_string();
        assert_eq!(shown, "redis+sentinel://a:26379,b:7,[::1]:26379/orders-1/3");
        for sentinel in &group.sentinels {
            let settings = sentinel.redis_settings();
            assert_eq!((settings.username(), settings.password()), (Some("s"), Some("+")));
            assert_eq!(settings.db(), 0);
        }
        assert!(parse("redis://h", true).is_none());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_is_that_of_all() {
        let (info, group) = read("rediss+sentinel://a,b/m").unwrap();
        let is_tls = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        assert!(is_tls(&info) && group.sentinels.iter().all(is_tls));
        let error = parse("rediss+sentinel://a/m", false).unwrap().err().unwrap();
        assert_eq!(error.part(), AddressPart::Tls);
    }

    #[test]
    fn what_is_wrong_is_named_without_credentials() {
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
