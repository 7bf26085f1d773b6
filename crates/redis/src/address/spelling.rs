//! Looks at the text of an address before the client library does, whose errors name no part.

use std::net::Ipv6Addr;

use redis::{ConnectionInfo, IntoConnectionInfo};

use super::error::{
    AddressError,
    AddressPart::{Database, Host, Login, Other, Parameter, Port, Scheme, Socket, Tls},
};

pub(super) const NO_TLS: &str = "the feature `tls` is not enabled";
pub(super) const ENABLE_TLS: &str = concat!(
    "write leasehold = { version = \"",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR"),
    "\", features = [\"tls\"] } in Cargo.toml"
);

/// Checks a text and tells how to show it. `has_tls` says whether the feature `tls` is enabled.
pub(super) fn check(text: &str, has_tls: bool) -> Result<String, AddressError> {
    if text.is_empty() {
        return Err(AddressError::new(Other, "", "it is empty", "write redis://host:port"));
    }
    let Some((scheme, rest)) = text.split_once("://") else { return Err(no_scheme(text)) };
    match &*scheme.to_ascii_lowercase() {
        "redis" | "valkey" => over_tcp("redis", rest),
        "rediss" | "valkeys" if !has_tls => {
            let shown = format!("rediss://{}", host_alone(rest));
            Err(AddressError::new(Tls, shown, NO_TLS, ENABLE_TLS))
        }
        "rediss" | "valkeys" => over_tcp("rediss", rest),
        scheme @ ("unix" | "redis+unix" | "valkey+unix") => over_socket(scheme, rest),
        scheme => Err(unknown_scheme(scheme, rest)),
    }
}

/// Reads the address of one server; `usual` is how such addresses are written.
pub(super) fn read(text: &str, usual: &'static str) -> Result<ConnectionInfo, AddressError> {
    let shown = check(text, cfg!(feature = "tls"))?;
    // The detail of an error may repeat parts of the text, so only its category is told.
    text.into_connection_info()
        .map_err(|error| AddressError::new(Other, shown, error.category().to_owned(), usual))
}

/// What stands before the path, the parameters or the fragment of an address, and the rest.
pub(super) fn authority<'a>(
    scheme: &str,
    rest: &'a str,
) -> Result<(&'a str, &'a str), AddressError> {
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // What looks like the end of the hosts ends a password.
    match after.chars().next().filter(|_| after.contains('@')) {
        Some(mark) => Err(unencoded(format!("{scheme}://…"), mark)),
        None => Ok((authority, after)),
    }
}

fn no_scheme(text: &str) -> AddressError {
    // Without a scheme it is not known which part is a password.
    if let Some((scheme, rest)) = misspelled(text) {
        let host = host_alone(rest);
        let what = "`://` is not behind its scheme";
        let remedy = format!("write {scheme}://{host}");
        return AddressError::new(Scheme, format!("{scheme}…{host}"), what, remedy);
    }
    let shown = host_alone(text);
    let scheme = if shown.starts_with('/') { "redis+unix" } else { "redis" };
    let remedy = format!("write {scheme}://{shown}");
    AddressError::new(Scheme, shown, "it has no scheme", remedy)
}

/// A scheme with `:/` or `//` behind it, and the rest.
fn misspelled(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_at(text.find([':', '/'])?);
    let is_scheme = ["redis", "rediss", "valkey", "valkeys"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name));
    let rest = rest.strip_prefix(":/").or_else(|| rest.strip_prefix("//"))?;
    is_scheme.then_some((scheme, rest))
}

fn unknown_scheme(scheme: &str, rest: &str) -> AddressError {
    let shown = format!("{scheme}://{}", host_alone(rest));
    let what = format!("the scheme `{scheme}` is not one of Redis");
    let remedy = if scheme.contains("sentinel") {
        "write redis+sentinel://host,host,host/master, with the name that the Sentinels know"
    } else if scheme.contains("cluster") {
        "write redis+cluster://host,host,host, with some nodes of the Cluster"
    } else {
        "write redis://host:port, rediss:// for TLS, or redis+unix:///path for a socket"
    };
    AddressError::new(Scheme, shown, what, remedy)
}

fn over_tcp(scheme: &str, rest: &str) -> Result<String, AddressError> {
    let (authority, after) = authority(scheme, rest)?;
    let (login, server) = authority.rsplit_once('@').unwrap_or(("", authority));
    let shown = format!("{scheme}://{server}");
    if let Some(mark) = login.chars().find(char::is_ascii_control) {
        return Err(unencoded(shown, mark));
    }
    if !is_utf8(login) {
        return Err(not_utf8(shown));
    }
    host_and_port(scheme, server)?;
    let (path, query) = after.split_at(after.find(['?', '#']).unwrap_or(after.len()));
    database(&format!("{shown}/"), path.trim_matches('/'))?;
    let shown = format!("{shown}{path}");
    for pair in query.trim_start_matches('?').split('#').next().unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "db" => {
                let what = "the database stands behind `?`, where it would be ignored";
                let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
                let db = if digits { value } else { "0" };
                let remedy = format!("write {scheme}://{server}/{db}");
                return Err(AddressError::new(Database, shown, what, remedy));
            }
            "user" | "username" | "pass" | "password" => {
                let what = "user or password stands behind `?`, where it would be ignored";
                let remedy = format!(
                    "write {scheme}://user:password@{server}, or {scheme}://:password@{server}"
                );
                return Err(AddressError::new(Login, shown, what, remedy));
            }
            "" | "protocol" => {}
            _ => return Err(unknown_parameter(shown, pair)),
        }
    }
    Ok(shown)
}

/// A parameter that would be ignored. Its value is not repeated, and neither is one that has none.
pub(super) fn unknown_parameter(shown: String, pair: &str) -> AddressError {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain)
    };
    let is_of_tls = |name: &str| {
        let name = name.to_ascii_lowercase();
        matches!(name.as_str(), "ssl" | "tls")
            || name.starts_with("ssl_")
            || name.starts_with("tls_")
    };
    let name = pair.split_once('=').map(|(name, _)| name).filter(|name| is_name(name));
    let what = match name {
        Some(name) => format!("the parameter `{name}` is not known"),
        None => "what stands behind `?` is not known".into(),
    };
    let remedy = if name.is_some_and(is_of_tls) {
        "leave it out; TLS is set by the scheme (rediss://, rediss+sentinel://, rediss+cluster://, rediss+quorum://), \
         its certificates on the builder"
    } else {
        "leave it out; timeouts and the number of connections are set on the builder"
    };
    AddressError::new(Parameter, shown, what, remedy)
}

fn host_and_port(scheme: &str, server: &str) -> Result<(), AddressError> {
    if server.contains(',') {
        let first = host_alone(server.split(',').next().unwrap_or_default());
        let what = "a list of hosts means one server each time";
        let remedy = format!(
            "give the address of one server: {scheme}://{first}, of Sentinels: {scheme}+sentinel://host,host,host/master, or of a Cluster: {scheme}+cluster://host,host,host"
        );
        return Err(AddressError::new(Host, format!("{scheme}://{first},…"), what, remedy));
    }
    let (host, port) = if let Some(bracketed) = server.strip_prefix('[') {
        let Some(end) = bracketed.find(']') else {
            let what = "the bracket of the host's IPv6 address is not closed";
            let remedy = format!("write {scheme}://[::1]:6379");
            return Err(AddressError::new(Host, format!("{scheme}://{server}"), what, remedy));
        };
        let (host, port) = server.split_at(end + 2);
        (host, port.strip_prefix(':').unwrap_or(port))
    } else if is_bare_ipv6(server) {
        let what = format!("the host `{server}` is an IPv6 address without brackets");
        // What stands behind its last colon may be a part of it.
        let with_port = server
            .rsplit_once(':')
            .filter(|(host, port)| host.parse::<Ipv6Addr>().is_ok() && port.parse::<u16>().is_ok());
        let (host, port) = with_port.unwrap_or((server, "6379"));
        let remedy =
            format!("write {scheme}://[{server}], or with a port {scheme}://[{host}]:{port}");
        return Err(AddressError::new(Host, format!("{scheme}://{server}"), what, remedy));
    } else {
        server.split_once(':').unwrap_or((server, ""))
    };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    // What stands in the port's place may be a password.
    let shown = match port {
        "" => format!("{scheme}://{host}"),
        port if is_number => format!("{scheme}://{host}:{port}"),
        _ => format!("{scheme}://{host}:…"),
    };
    if host.is_empty() {
        let what = "the host is missing";
        let remedy = format!("write {scheme}://host:port");
        return Err(AddressError::new(Host, shown, what, remedy));
    }
    if let Some(wrong) = host.chars().find(|c| c.is_whitespace() || "<>^|\\`{}\"".contains(*c)) {
        let what = format!("the host `{host}` cannot have the character {wrong:?}");
        let remedy = "write a host's name or its IP address";
        return Err(AddressError::new(Host, shown, what, remedy));
    }
    if let "0.0.0.0" | "[::]" = host {
        let what = format!("the host {host} means every address of a machine, so nobody is there");
        let remedy = format!("write the server's address, such as {scheme}://127.0.0.1:6379");
        return Err(AddressError::new(Host, shown, what, remedy));
    }
    if !port.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0) {
        let (what, remedy) = if is_number {
            (format!("the port `{port}` is not"), format!("write {scheme}://{host}:6379"))
        } else {
            let remedy = format!(
                "write {scheme}://{host}:6379; if it is a password, write @ and the host behind it"
            );
            ("what stands in the place of the port is not".into(), remedy)
        };
        return Err(AddressError::new(Port, shown, what + " a number from 1 to 65535", remedy));
    }
    Ok(())
}

/// `before` is how to show what stands before the number.
fn database(before: &str, db: &str) -> Result<(), AddressError> {
    // Redis reads no greater one.
    if db.is_empty() || db.bytes().all(|byte| byte.is_ascii_digit()) && db.parse::<i32>().is_ok() {
        return Ok(());
    }
    let what = format!("the database `{db}` is not a number from 0 to {}", i32::MAX);
    let remedy = format!("write {before}0 or leave it out");
    Err(AddressError::new(Database, format!("{before}{db}"), what, remedy))
}

fn over_socket(scheme: &str, rest: &str) -> Result<String, AddressError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let shown = format!("{scheme}://{path}");
    if !path.starts_with('/') || path.len() == 1 {
        // A login before the path would be shown with it.
        let path = path.rsplit_once('@').map_or(path, |(_, path)| path).trim_matches('/');
        let shown = format!("{scheme}://{path}");
        let what = "the path of the socket does not begin with `/`, or is missing";
        let path = if path.is_empty() { "path" } else { path };
        let remedy = format!("write {scheme}:///{path}");
        return Err(AddressError::new(Socket, shown, what, remedy));
    }
    if query.contains('#') {
        return Err(unencoded(shown, '#'));
    }
    if path.contains('#') {
        let what = "the path of the socket has the character `#`";
        return Err(AddressError::new(Socket, shown, what, "write %23 in its place"));
    }
    let mut has_login = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("db", db)) => database(&format!("{shown}?db="), db)?,
            Some(("user" | "pass", text)) if text.contains('+') => {
                return Err(unencoded(shown, '+'));
            }
            Some(("user" | "pass", text)) if !is_utf8(text) => return Err(not_utf8(shown)),
            Some(("user" | "pass", _)) => has_login = true,
            Some(("protocol", _)) => {}
            // Perhaps the rest of a password, so it is not repeated.
            Some(_) if has_login => return Err(unencoded(shown, '&')),
            Some(_) => return Err(unknown_parameter(shown, pair)),
            // The rest of a password, so it is not repeated.
            None => return Err(unencoded(shown, '&')),
        }
    }
    Ok(shown)
}

/// User or password have a character that means something else in an address.
fn unencoded(shown: String, mark: char) -> AddressError {
    let code = u32::from(mark);
    let what = match mark {
        '+' => "user or password have a `+`, which means a space here".into(),
        mark if mark.is_control() => "user or password have a control character".into(),
        mark => format!("user or password seem to have a `{mark}`, which ends them here"),
    };
    let written = if mark.is_control() { String::new() } else { format!("`{mark}` as ") };
    let others = match mark {
        '+' | '&' => ", a space as %20",
        '@' => "",
        _ => ", and likewise every other character that is neither a letter nor a digit",
    };
    let remedy = format!("write {written}%{code:02X}{others}");
    AddressError::new(Login, shown, what, remedy)
}

fn not_utf8(shown: String) -> AddressError {
    let what = "user or password are not UTF-8 once `%` and two digits are decoded";
    AddressError::new(Login, shown, what, "write `%` itself as %25")
}

/// Whether a percent-encoded text decodes to UTF-8.
fn is_utf8(encoded: &str) -> bool {
    let mut decoded = Vec::with_capacity(encoded.len());
    // What stands before the first `%` is not encoded.
    for (at, part) in encoded.split('%').enumerate() {
        let digits = part.get(..2).filter(|_| at > 0);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.extend(byte.or_else(|| (at > 0).then_some(b'%')));
        decoded.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn is_bare_ipv6(server: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    server.matches(':').count() > 1 && server.chars().all(is_part)
}

/// The host of a text that is not understood: nothing that may be a login, no port that is none.
pub(super) fn host_alone(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let text = text.rsplit_once('@').map_or(text, |(_, host)| host);
    if text.starts_with('/') {
        return text.into();
    }
    let server = text.split('/').next().unwrap_or_default();
    match server.split_once(':') {
        Some((host, port)) if port.parse::<u16>().is_err() => format!("{host}:…"),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left out, it connects without TLS.
    #[test]
    fn a_parameter_for_tls_is_told_with_the_scheme() {
        for pair in ["ssl=true", "tls=1", "ssl_cert_reqs=none", "tls_ca=/ca"] {
            let text = unknown_parameter("redis://h".into(), pair).to_string();
            assert!(text.contains("rediss://") && text.contains("rediss+sentinel://"), "{text}");
            assert!(!text.contains("timeouts"), "{text}");
        }
        for pair in ["timeout=5", "max_connections=9", "tlsx"] {
            let text = unknown_parameter("redis://h".into(), pair).to_string();
            assert!(text.contains("leave it out") && !text.contains("TLS"), "{text}");
        }
    }
}
