use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

/// Asks a local server, and reads its answer as JSON; `None` if there is none.
pub(crate) fn get(address: &str, path: &str, query: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let query = encoded(query);
    write!(stream, "GET {path}?{query} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

/// The value of `key=value`, percent-encoded.
fn encoded(query: &str) -> String {
    let Some((key, value)) = query.split_once('=') else { return String::new() };
    let bytes = value.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    format!("{key}={}", bytes.collect::<String>())
}
