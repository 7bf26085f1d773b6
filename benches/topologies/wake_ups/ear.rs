use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

use leasehold_testkit::RedisServer;

use super::{channel::Channel, messages::MESSAGE};
use crate::Failure;

/// How long the next message may be on its way.
const PATIENCE: Duration = Duration::from_secs(20);

/// A subscriber that reads as many messages as it expects, with as little work as can be.
#[derive(Debug)]
pub(super) struct Ear(JoinHandle<io::Result<()>>);

impl Ear {
    /// Subscribes at a server, and begins to read.
    pub(super) fn begin(
        server: &RedisServer,
        channel: Channel,
        name: &str,
        expected: usize,
    ) -> Result<Self, Failure> {
        let port = server.port().ok_or("the server has no port")?;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let command = channel.subscribe();
        write!(stream, "{command} {name}\r\n")?;
        // The confirmation has the same words as the command, then the number of subscriptions.
        let word = command.to_lowercase();
        let answer =
            format!("*3\r\n${}\r\n{word}\r\n${}\r\n{name}\r\n:1\r\n", word.len(), name.len());
        read(&mut stream, answer.len())?;
        let each = channel.word().map_or(0, |word| frame(word, name).len());
        Ok(Self(thread::spawn(move || read(&mut stream, each * expected))))
    }

    /// Returns when all have arrived.
    pub(super) fn end(self) -> Result<(), Failure> {
        Ok(self.0.join().map_err(|_| "the thread of the subscriber panicked")??)
    }
}

/// A message as RESP2 has it.
fn frame(word: &str, name: &str) -> String {
    let parts = [word.len(), name.len(), MESSAGE.len()];
    let message = String::from_utf8_lossy(&MESSAGE);
    format!(
        "*3\r\n${}\r\n{word}\r\n${}\r\n{name}\r\n${}\r\n{message}\r\n",
        parts[0], parts[1], parts[2]
    )
}

fn read(stream: &mut TcpStream, bytes: usize) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    let mut left = bytes;
    while left > 0 {
        let most = left.min(chunk.len());
        match stream.read(&mut chunk[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read,
        }
    }
    Ok(())
}
