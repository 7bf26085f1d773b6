use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{book::Shared, hole::Direction};

/// One end of a connection, into which messages go unless there is a hole before it.
#[derive(Debug)]
pub(super) struct Outlet<'a, W> {
    pub(super) shared: &'a Shared,
    pub(super) link: u64,
    pub(super) direction: Direction,
    pub(super) to: W,
}

impl<W: AsyncWrite + Unpin> Outlet<'_, W> {
    /// Waits until the hole is closed.
    pub(super) async fn open(&self) {
        self.shared.until(|book| book.passes(self.link, self.direction)).await;
    }

    /// Sends a message when it may pass.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open().await;
        if !self.shared.book().chops {
            return self.to.write_all(bytes).await;
        }
        for byte in bytes {
            self.to.write_all(std::slice::from_ref(byte)).await?;
            // The other end may look at what it has.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
