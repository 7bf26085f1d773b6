use std::{fmt, str::FromStr};

use redis::{Client, ConnectionAddr, ConnectionInfo, RedisConnectionInfo};

use super::{
    error::{AddressError, AddressPart},
    server_list::{self, SentinelGroup, Servers},
    spelling,
};
use crate::{
    credentials::Credentials,
    endpoint::{Endpoint, Host},
};

/// Where a Redis server is, and how to log in; shown without its credentials.
///
/// It is made from a text, a [`redis::Client`](https://docs.rs/redis/1/redis/struct.Client.html) or
/// a [`redis::ConnectionInfo`](https://docs.rs/redis/1/redis/struct.ConnectionInfo.html). Texts are
///
/// - `redis://[user:password@]host[:port][/database]`
/// - `rediss://…` for TLS, with the feature `tls`
/// - `redis+unix:///path[?db=0&user=…&pass=…]`, also `unix://`
/// - `redis+sentinel://[user:password@]host[:port],host[:port]/master[/database]` for the master
///   that these Sentinels name, `rediss+sentinel://…` for TLS. User and password are those of the
///   master; those of the Sentinels are written as `?sentinel_user=…&sentinel_pass=…`. Name all
///   Sentinels: a master is believed that most of them name.
/// - `redis+cluster://[user:password@]host[:port],host[:port]` for a Cluster, `rediss+cluster://…`
///   for TLS. Name some of its nodes: any of them knows the others.
/// - `redis+quorum://[user:password@]host[:port],host[:port],host[:port][/database]` for 3, 5 or 7
///   independent masters, `rediss+quorum://…` for TLS. Name all of them, in every process.
///
/// with `valkey` in place of `redis` where you like. Any other parameter is refused, except
/// `protocol`, which changes nothing. Characters of user and password that have a meaning in
/// addresses are percent-encoded. Of a client, its address, login, database and TLS certificates
/// are used; the protocol (RESP3) and the settings of TCP are Leasehold's own.
#[derive(Clone)]
pub struct RedisAddress {
    /// How to connect; for a group or a Cluster, to its masters, wherever they are.
    info: ConnectionInfo,
    servers: Servers,
}

impl RedisAddress {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`AddressError`] when it is not understood, or needs a feature that is not enabled.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let url = url.trim();
        if let Some(read) = server_list::parse(url) {
            let (info, servers) = read?;
            return Ok(Self { servers, ..Self::new(info)? });
        }
        Self::new(spelling::read(url, "write redis://[user:password@]host[:port][/database]")?)
    }

    fn new(info: ConnectionInfo) -> Result<Self, AddressError> {
        use ConnectionAddr::{Tcp, TcpTls, Unix};
        let address = Self { info, servers: Servers::One };
        let settings = address.info.redis_settings();
        let (part, what, remedy) = match address.info.addr() {
            // Another crate may have enabled TLS in the client library, without what it needs here.
            TcpTls { .. } if cfg!(not(feature = "tls")) => {
                (AddressPart::Tls, spelling::NO_TLS, spelling::ENABLE_TLS)
            }
            TcpTls { insecure: true, .. } => (
                AddressPart::Tls,
                "TLS without verification of the server's certificate is not supported",
                "name the certificate's authority with tls_root_ca()",
            ),
            addr if !matches!(addr, Tcp(..) | TcpTls { .. } | Unix(_)) => (
                AddressPart::Other,
                "this kind of connection is not supported",
                "connect by TCP, TLS or a unix socket",
            ),
            _ if settings.db() < 0 => (
                AddressPart::Database,
                "the number of the database is below 0",
                "databases are numbered from 0",
            ),
            _ if settings.username().is_some() && settings.password().is_none() => (
                AddressPart::Login,
                "it has a user and no password",
                "write redis://user:password@host, or redis://:password@host for a password without a user",
            ),
            _ => return Ok(address),
        };
        Err(AddressError::new(part, address.to_string(), what, remedy))
    }

    /// Whether the address has a password: that of the server, or that of its Sentinels.
    pub fn has_password(&self) -> bool {
        let of_sentinels = self.sentinels().into_iter().flat_map(|group| &group.sentinels);
        of_sentinels.chain([&self.info]).any(|info| info.redis_settings().password().is_some())
    }

    /// Returns the same address with these credentials, in place of the user and password that it has. They are
    /// those of the server, and not those of Sentinels.
    ///
    /// A login that the server refuses lasts then, as one that is a part of the address: waits end at once. For a
    /// password that changes, set a [`CredentialsProvider`](crate::CredentialsProvider).
    #[must_use]
    pub fn with_credentials(self, credentials: &Credentials) -> Self {
        let blank = RedisConnectionInfo::default().set_db(self.info.redis_settings().db());
        Self { info: credentials.on(self.info.set_redis_settings(blank)), ..self }
    }

    /// How to connect, as the client library takes it.
    #[doc(hidden)]
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// The address of one node of a Cluster or of a quorum.
    #[doc(hidden)]
    pub fn of_node(info: ConnectionInfo) -> Self {
        Self { info, servers: Servers::One }
    }

    /// The Sentinels that know where the server is; `None` for another kind of address.
    #[doc(hidden)]
    pub fn sentinels(&self) -> Option<&SentinelGroup> {
        let Servers::Master(group) = &self.servers else { return None };
        Some(group)
    }

    /// All nodes of a quorum; `None` for another kind of address.
    #[doc(hidden)]
    pub fn quorum(&self) -> Option<&[Endpoint]> {
        let Servers::Quorum(nodes) = &self.servers else { return None };
        Some(nodes)
    }

    /// Some nodes of a Cluster; `None` for another kind of address.
    #[doc(hidden)]
    pub fn cluster(&self) -> Option<&[Endpoint]> {
        let Servers::Cluster(nodes) = &self.servers else { return None };
        Some(nodes)
    }
}

impl FromStr for RedisAddress {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        Self::parse(url)
    }
}

macro_rules! read_from {
    ($($from:ty, |$value:ident| $address:expr;)+) => {$(
        impl TryFrom<$from> for RedisAddress {
            type Error = AddressError;

            fn try_from($value: $from) -> Result<Self, AddressError> {
                $address
            }
        }
    )+};
}

read_from! {
    &str, |url| Self::parse(url);
    // For what yields texts by value, such as `std::env::var`.
    String, |url| Self::parse(&url);
    &String, |url| Self::parse(url);
    ConnectionInfo, |info| Self::new(info);
    &ConnectionInfo, |info| Self::new(info.clone());
    Client, |client| Self::new(client.get_connection_info().clone());
    &Client, |client| Self::new(client.get_connection_info().clone());
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let db = self.info.redis_settings().db();
        match &self.servers {
            Servers::One => {}
            Servers::Master(SentinelGroup { sentinels, master }) => {
                let sentinels = sentinels.iter().filter_map(|one| Endpoint::of(one.addr()));
                let sentinels: Vec<_> = sentinels.collect();
                let shown = server_list::shown("sentinel", &self.info, &sentinels);
                return write!(f, "{shown}/{master}/{db}");
            }
            Servers::Cluster(nodes) => {
                return f.write_str(&server_list::shown("cluster", &self.info, nodes));
            }
            Servers::Quorum(nodes) => {
                return write!(f, "{}/{db}", server_list::shown("quorum", &self.info, nodes));
            }
        }
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                write!(f, "redis://{}:{port}/{db}", Host(host))
            }
            ConnectionAddr::TcpTls { host, port, .. } => {
                write!(f, "rediss://{}:{port}/{db}", Host(host))
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_take_the_place_of_those_of_an_address() {
        for url in [
            "redis://bob:pw@h/3",
            "redis://h/3",
            "redis+sentinel://h/m/3",
            "redis+quorum://bob:pw@a,b,c/3",
        ] {
            for user in [None, Some("app")] {
                let credentials = match user {
                    Some(user) => Credentials::new(user, "new"),
                    None => Credentials::password("new"),
                };
                let address = RedisAddress::parse(url).unwrap().with_credentials(&credentials);
                let settings = address.info().redis_settings();
                assert_eq!(
                    (settings.username(), settings.password()),
                    (user, Some("new")),
                    "{url}"
                );
                assert_eq!(settings.db(), 3, "{url}");
            }
        }
    }

    #[test]
    fn addresses_are_shown_without_credentials() {
        let address = RedisAddress::parse("redis://bob:secret@example.org:7000/3").unwrap();
        assert_eq!(address.to_string(), "redis://example.org:7000/3");
        assert_eq!(format!("{address:?}"), "redis://example.org:7000/3");
        let ipv6 = RedisAddress::parse("redis://[::1]:7000").unwrap();
        assert_eq!(ipv6.to_string(), "redis://[::1]:7000/0");
        let unix = RedisAddress::parse("redis+unix:///tmp/s?db=2&user=bob&pass=secret").unwrap();
        assert_eq!(unix.to_string(), "redis+unix:///tmp/s?db=2");
        assert_eq!(unix.info().redis_settings().password(), Some("secret"));
    }

    #[test]
    fn an_address_knows_whether_it_has_a_password() {
        for (url, has_password) in [
            ("redis://h", false),
            ("redis://:secret@h", true),
            ("redis+unix:///tmp/s?user=bob&pass=secret", true),
            ("redis+cluster://bob:secret@a,b", true),
            ("redis+sentinel://a,b,c/m", false),
            ("redis+sentinel://a,b,c/m?sentinel_pass=secret", true),
        ] {
            assert_eq!(RedisAddress::parse(url).unwrap().has_password(), has_password, "{url}");
        }
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
            "redis://bob:secret",
            "redis://bob:secret/1",
            "redis://bob:se:cret",
            "redis+unix:///s?pass=a&secret",
        ] {
            let error = RedisAddress::parse(bad).unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(!said.contains("cret"), "{said}");
        }
    }

    #[test]
    fn good_addresses_are_read() {
        for (good, shown) in [
            ("redis://h", "redis://h:6379/0"),
            (" redis://h:1/2\n", "redis://h:1/2"),
            ("REDIS://h", "redis://h:6379/0"),
            ("valkey://h/", "redis://h:6379/0"),
            ("redis://h:", "redis://h:6379/0"),
            ("redis://[::1]:7", "redis://[::1]:7/0"),
            ("redis://u:p@ss:w@h", "redis://h:6379/0"),
            ("redis://:p%2Fw@h?protocol=resp3", "redis://h:6379/0"),
            ("redis://my-host_1.example.org", "redis://my-host_1.example.org:6379/0"),
            ("unix:///tmp/a%20b", "redis+unix:///tmp/a b?db=0"),
            ("redis+unix:///s?user=u&pass=%2B", "redis+unix:///s?db=0"),
        ] {
            let read = RedisAddress::parse(good).map(|address| address.to_string());
            assert_eq!(read.as_deref(), Ok(shown), "{good}");
        }
    }

    #[test]
    fn a_parameter_that_would_be_ignored_is_refused_by_its_name() {
        for (bad, named) in [
            ("redis://h?foo=1", "`foo`"),
            ("redis://h/2?timeout=5s", "`timeout`"),
            ("redis://h?protocol=resp3&ssl_cert_reqs=none", "`ssl_cert_reqs`"),
            ("redis+unix:///s?db=1&retries=3&user=u&pass=p", "`retries`"),
            ("unix:///s?database=1", "`database`"),
        ] {
            let error = RedisAddress::parse(bad).unwrap_err();
            assert_eq!(error.part(), AddressPart::Parameter, "{bad}");
            assert!(error.to_string().contains(named), "{error}");
        }
        // Its value, what has none, and what stands behind a password may be part of one.
        for bad in [
            "redis://h?foo=s3cret",
            "redis://h?s3cret",
            "unix:///s?foo=s3cret",
            "unix:///s?pass=p&s3cret=1",
        ] {
            let error = RedisAddress::parse(bad).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_wrong_address_is_told_as_it_was_written_with_what_to_write() {
        for (bad, shown, write) in [
            ("redis:/h", "\"redis…h\"", "write redis://h"),
            ("redis//h:1", "\"redis…h:1\"", "write redis://h:1"),
            ("REDISS//h", "\"REDISS…h\"", "write REDISS://h"),
            ("redis://::1:6379", "\"redis://::1:6379\"", "with a port redis://[::1]:6379"),
            ("redis://fe80::1", "\"redis://fe80::1\"", "write redis://[fe80::1]"),
            ("redis+quorum://a,,c", "\"redis+quorum://a,,c\"", "write redis+quorum://"),
            ("redis+cluster://h:0", "\"redis+cluster://h:0\"", "write redis+cluster://"),
            ("redis+sentinel://u:p@a,h:secret/m", "a,h:…\"", "write redis+sentinel://"),
            ("redis://h/2147483648", "\"redis://h/2147483648\"", "from 0 to 2147483647"),
        ] {
            let said = RedisAddress::parse(bad).unwrap_err().to_string();
            assert!(said.contains(shown) && said.contains(write), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn texts_of_every_kind_are_read() {
        let text = String::from("redis://h:7/3");
        let of_str: Result<RedisAddress, _> = text.as_str().try_into();
        let of_ref: Result<RedisAddress, _> = (&text).try_into();
        let of_string: Result<RedisAddress, _> = text.try_into();
        for address in [of_str, of_ref, of_string] {
            assert_eq!(address.unwrap().to_string(), "redis://h:7/3");
        }
    }

    #[test]
    fn a_client_is_an_address() {
        let client = Client::open("redis://bob:secret@h:7/3").unwrap();
        for address in [
            RedisAddress::try_from(&client).unwrap(),
            RedisAddress::try_from(client.get_connection_info()).unwrap(),
        ] {
            assert_eq!(address.to_string(), "redis://h:7/3");
            assert_eq!(address.info().redis_settings().username(), Some("bob"));
        }
        let settings = client.get_connection_info().redis_settings().clone().set_db(-1);
        let info = client.get_connection_info().clone().set_redis_settings(settings);
        let error = RedisAddress::try_from(info).unwrap_err();
        assert_eq!(error.part(), AddressPart::Database);
    }

    #[test]
    fn tls_without_the_feature_says_what_to_write() {
        for url in ["rediss://h", "valkeys://h"] {
            let error = spelling::check(url, false).unwrap_err();
            assert_eq!(error.part(), AddressPart::Tls);
            let error = error.to_string();
            assert!(error.contains("`tls`") && error.contains("Cargo.toml"), "{error}");
            assert!(error.contains(r#"features = ["tls"]"#), "{error}");
        }
    }
}
