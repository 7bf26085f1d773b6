//! Looks at the text of an address before the client library does, whose errors name no part.

use super::error::{AddressError, AddressPart};

pub(super) const NO_TLS: &str = "the feature `tls` is not enabled";
pub(super) const ENABLE_TLS: &str = concat!(
    "write leasehold = { version = \"",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR"),
    "\", features = [\"tls\"] } in Cargo.toml"
);

/// A fault: the part, how to show the address, what is wrong, and what to do.
type Fault = (AddressPart, String, String, String);

/// Checks a text and tells how to show it. `has_tls` says whether the feature `tls` is enabled.
pub(super) fn check(text: &str, has_tls: bool) -> Result<String, AddressError> {
    let checked = match text.split_once("://") {
        _ if text.is_empty() => Err(empty()),
        None => Err(no_scheme(text)),
        Some((scheme, rest)) => of_scheme(&scheme.to_ascii_lowercase(), rest, has_tls),
    };
    checked.map_err(|(part, shown, what, remedy)| AddressError::new(part, shown, what, remedy))
}

fn of_scheme(scheme: &str, rest: &str, has_tls: bool) -> Result<String, Fault> {
    match scheme {
        "redis" | "valkey" => over_tcp("redis", rest),
        "rediss" | "valkeys" if !has_tls => {
            let shown = format!("rediss://{}", host_alone(rest));
            Err((AddressPart::Tls, shown, NO_TLS.into(), ENABLE_TLS.into()))
        }
        "rediss" | "valkeys" => over_tcp("rediss", rest),
        "unix" | "redis+unix" | "valkey+unix" => over_socket(scheme, rest),
        _ => Err(unknown_scheme(scheme, rest)),
    }
}

fn empty() -> Fault {
    let remedy = "write redis://host:port".into();
    (AddressPart::Other, String::new(), "it is empty".into(), remedy)
}

fn no_scheme(text: &str) -> Fault {
    // Without a scheme it is not known which part is a password.
    let shown = host_alone(text);
    let remedy = if shown.starts_with('/') {
        format!("write redis+unix://{shown}")
    } else {
        format!("write redis://{shown}")
    };
    (AddressPart::Scheme, shown, "it has no scheme".into(), remedy)
}

fn unknown_scheme(scheme: &str, rest: &str) -> Fault {
    let shown = format!("{scheme}://{}", host_alone(rest));
    let (what, remedy) = if scheme.contains("sentinel") {
        (
            "the scheme is that of Redis Sentinel, which is not supported in this version".into(),
            "give the address of the master, or of a name or proxy that follows it, as redis://host:port",
        )
    } else if scheme.contains("cluster") {
        (
            "the scheme is that of Redis Cluster, which is not supported in this version".into(),
            "give the address of one server that is not part of it, as redis://host:port",
        )
    } else {
        (
            format!("the scheme `{scheme}` is not one of Redis"),
            "write redis://host:port, rediss:// for TLS, or redis+unix:///path for a socket",
        )
    };
    (AddressPart::Scheme, shown, what, remedy.into())
}

fn over_tcp(scheme: &str, rest: &str) -> Result<String, Fault> {
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // What looks like the end of the host ends the password.
    if let Some(mark) = after.chars().next().filter(|_| after.contains('@')) {
        return Err(unencoded(format!("{scheme}://…"), mark));
    }
    let (login, server) = match authority.rsplit_once('@') {
        Some((login, server)) => (login, server),
        None => ("", authority),
    };
    let shown = format!("{scheme}://{server}");
    if let Some(mark) = login.chars().find(char::is_ascii_control) {
        return Err(unencoded(shown, mark));
    }
    if !is_utf8(login) {
        return Err(not_utf8(shown));
    }
    host_and_port(scheme, server)?;
    let (path, query) = after.split_at(after.find(['?', '#']).unwrap_or(after.len()));
    database(&shown, path.trim_matches('/'))?;
    let shown = format!("{shown}{path}");
    for pair in query.trim_start_matches('?').split('#').next().unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "db" => {
                let what = "the database stands behind `?`, where it would be ignored".into();
                let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
                let db = if digits { value } else { "0" };
                let remedy = format!("write {scheme}://{server}/{db}");
                return Err((AddressPart::Database, shown, what, remedy));
            }
            "user" | "username" | "pass" | "password" => {
                let what = "user or password stands behind `?`, where it would be ignored".into();
                let remedy = format!(
                    "write {scheme}://user:password@{server}, or {scheme}://:password@{server}"
                );
                return Err((AddressPart::Login, shown, what, remedy));
            }
            "" | "protocol" => {}
            _ => return Err(unknown_parameter(shown, pair)),
        }
    }
    Ok(shown)
}

/// A parameter that would be ignored. Its value is not repeated, and neither is one that has none.
fn unknown_parameter(shown: String, pair: &str) -> Fault {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain)
    };
    let what = match pair.split_once('=') {
        Some((name, _)) if is_name(name) => format!("the parameter `{name}` is not known"),
        _ => "what stands behind `?` is not known".into(),
    };
    let remedy = "leave it out; timeouts, TLS and the number of connections are set on the builder";
    (AddressPart::Parameter, shown, what, remedy.into())
}

fn host_and_port(scheme: &str, server: &str) -> Result<(), Fault> {
    if server.contains(',') {
        let first = host_alone(server.split(',').next().unwrap_or_default());
        let what = "a list of hosts is not supported".into();
        let remedy = format!("give the address of one server: {scheme}://{first}");
        return Err((AddressPart::Host, format!("{scheme}://{first},…"), what, remedy));
    }
    let (host, port) = if let Some(bracketed) = server.strip_prefix('[') {
        let Some(end) = bracketed.find(']') else {
            let what = "the bracket of the host's IPv6 address is not closed".into();
            let remedy = format!("write {scheme}://[::1]:6379");
            return Err((AddressPart::Host, format!("{scheme}://{server}"), what, remedy));
        };
        let (host, port) = server.split_at(end + 2);
        (host, port.strip_prefix(':').unwrap_or(port))
    } else if is_bare_ipv6(server) {
        let what = format!("the host `{server}` is an IPv6 address without brackets");
        let remedy = format!("write {scheme}://[{server}], with a port {scheme}://[{server}]:6379");
        return Err((AddressPart::Host, format!("{scheme}://{server}"), what, remedy));
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
        let what = "the host is missing".into();
        let remedy = format!("write {scheme}://host:port");
        return Err((AddressPart::Host, shown, what, remedy));
    }
    if let Some(wrong) = host.chars().find(|c| c.is_whitespace() || "<>^|\\`{}\"".contains(*c)) {
        let what = format!("the host `{host}` cannot have the character {wrong:?}");
        let remedy = "write a host's name or its IP address".into();
        return Err((AddressPart::Host, shown, what, remedy));
    }
    if let "0.0.0.0" | "[::]" = host {
        let what = format!("the host {host} means every address of a machine, so nobody is there");
        let remedy = format!("write the server's address, such as {scheme}://127.0.0.1:6379");
        return Err((AddressPart::Host, shown, what, remedy));
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
        return Err((AddressPart::Port, shown, what + " a number from 1 to 65535", remedy));
    }
    Ok(())
}

fn database(server: &str, db: &str) -> Result<(), Fault> {
    if db.is_empty() || db.bytes().all(|byte| byte.is_ascii_digit()) && db.parse::<i64>().is_ok() {
        return Ok(());
    }
    let what = format!("the database `{db}` is not a number from 0 on");
    let remedy = format!("write {server}/0 or leave it out");
    Err((AddressPart::Database, format!("{server}/{db}"), what, remedy))
}

fn over_socket(scheme: &str, rest: &str) -> Result<String, Fault> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let shown = format!("{scheme}://{path}");
    if !path.starts_with('/') || path.len() == 1 {
        // A login before the path would be shown with it.
        let path = path.rsplit_once('@').map_or(path, |(_, path)| path).trim_matches('/');
        let shown = format!("{scheme}://{path}");
        let what = "the path of the socket does not begin with `/`, or is missing".into();
        let path = if path.is_empty() { "path" } else { path };
        let remedy = format!("write {scheme}:///{path}");
        return Err((AddressPart::Socket, shown, what, remedy));
    }
    if query.contains('#') {
        return Err(unencoded(shown, '#'));
    }
    if path.contains('#') {
        let what = "the path of the socket has the character `#`".into();
        return Err((AddressPart::Socket, shown, what, "write %23 in its place".into()));
    }
    let mut has_login = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("db", db)) => database_of_socket(&shown, db)?,
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

fn database_of_socket(shown: &str, db: &str) -> Result<(), Fault> {
    database("", db).map_err(|(part, _, what, _)| {
        (part, format!("{shown}?db={db}"), what, format!("write {shown}?db=0 or leave it out"))
    })
}

/// User or password have a character that means something else in an address.
fn unencoded(shown: String, mark: char) -> Fault {
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
    (AddressPart::Login, shown, what, remedy)
}

fn not_utf8(shown: String) -> Fault {
    let what = "user or password are not UTF-8 once `%` and two digits are decoded".into();
    (AddressPart::Login, shown, what, "write `%` itself as %25".into())
}

/// Whether a percent-encoded text decodes to UTF-8.
fn is_utf8(encoded: &str) -> bool {
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut bytes, mut decoded) = (encoded.bytes(), Vec::with_capacity(encoded.len()));
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let digits = (ahead.next().and_then(hex), ahead.next().and_then(hex));
        match (byte, digits) {
            (b'%', (Some(high), Some(low))) => {
                decoded.push(high << 4 | low);
                bytes = ahead;
            }
            _ => decoded.push(byte),
        }
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn is_bare_ipv6(server: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    server.matches(':').count() > 1 && server.chars().all(is_part)
}

/// The host of a text that is not understood: nothing that may be a login, and no port that is
/// none.
fn host_alone(text: &str) -> String {
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
