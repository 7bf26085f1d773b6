use std::{future::pending, io};

use redis::{ConnectionAddr, ConnectionInfo};
use tokio::net::TcpStream;

use super::fault;
use crate::not_dialed::NotDialed;

/// Completes if the server at an address answers in plain text. A Redis server without TLS waits for the end
/// of the line that it takes a handshake for, until the client gives up.
pub(super) async fn answered_without(info: &ConnectionInfo) -> NotDialed {
    match is_plain(info.addr()).await {
        Ok(true) => fault::foreign(),
        _ => pending().await,
    }
}

/// Whether the answer to a `PING` begins as an answer of Redis does.
async fn is_plain(address: &ConnectionAddr) -> io::Result<bool> {
    let ConnectionAddr::TcpTls { host, port, .. } = address else { return Ok(false) };
    let stream = TcpStream::connect((host.as_str(), *port)).await?;
    stream.writable().await?;
    stream.try_write(b"PING\r\n")?;
    let mut first = [0; 1];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut first) {
            Ok(read) => return Ok(read == 1 && matches!(first[0], b'+' | b'-')),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
