use std::{io, mem};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::Splitter;

/// One end of a connection, out of which messages come; what is not asked for stays in the socket.
#[derive(Debug)]
pub(super) struct Inlet<R> {
    from: R,
    buffer: Box<[u8]>,
    splitter: Splitter,
    was_read: bool,
}

impl<R: AsyncRead + Unpin> Inlet<R> {
    const SIZE: usize = 16 << 10;

    pub(super) fn new(from: R, raw: bool) -> Self {
        let splitter = if raw { Splitter::raw() } else { Splitter::new() };
        Self { from, buffer: vec![0; Self::SIZE].into(), splitter, was_read: false }
    }

    /// The next message; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let no_resp = |_| io::Error::new(io::ErrorKind::InvalidData, "no RESP");
        loop {
            if let Some(message) = self.splitter.next().map_err(no_resp)? {
                return Ok(Some(message));
            }
            let length = self.from.read(&mut self.buffer).await?;
            if length == 0 {
                return Ok(None);
            }
            self.splitter.push(&self.buffer[..length]);
            self.was_read = true;
        }
    }

    /// Whether something was read since this was asked last.
    pub(super) fn was_read(&mut self) -> bool {
        mem::take(&mut self.was_read)
    }
}
