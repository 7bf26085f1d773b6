#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{io, path::Path, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    time::{sleep, timeout},
};

use crate::Failure;

/// How long the other process may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// What two processes pass to each other: who has it may use the lock.
#[derive(Debug)]
pub(crate) struct Baton {
    other: UnixStream,
    is_here: bool,
}

impl Baton {
    /// Meets the other process. The first one has the baton.
    pub(crate) async fn meet(meeting: &Path, first: bool) -> Result<Self, Failure> {
        let other = if first {
            let listener = UnixListener::bind(meeting)?;
            timeout(PATIENCE, listener.accept()).await??.0
        } else {
            timeout(PATIENCE, found(meeting)).await?
        };
        Ok(Self { other, is_here: first })
    }

    /// Waits for the baton; false when the other process has ended.
    pub(crate) async fn take(&mut self) -> io::Result<bool> {
        if self.is_here {
            return Ok(true);
        }
        self.is_here = self.other.read(&mut [0]).await? == 1;
        Ok(self.is_here)
    }

    /// Gives the baton to the other process.
    pub(crate) async fn pass(&mut self) -> io::Result<()> {
        self.is_here = false;
        self.other.write_all(&[0]).await
    }
}

/// Tries until the other process is there.
async fn found(meeting: &Path) -> UnixStream {
    loop {
        match UnixStream::connect(meeting).await {
            Ok(stream) => return stream,
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}
