use std::{io, time::Duration};

use leasehold_core::{Clock, SystemClock};
use tokio::{io::AsyncWriteExt, select};

use super::{inlet::Inlet, upstream::Upstream};

/// A copy of a request that arrives late, on a connection of its own.
#[derive(Debug, Clone)]
pub(super) struct LateCopy {
    /// What has to be said before it.
    pub(super) login: Vec<Vec<u8>>,
    pub(super) request: Vec<u8>,
}

/// How long the server may take for one.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends copies, one after the other; what the server answered, each as far as it did.
pub(super) async fn replay(upstream: Upstream, copies: Vec<LateCopy>) -> Vec<String> {
    let mut answers = Vec::with_capacity(copies.len());
    for copy in &copies {
        let ends_at = SystemClock.now() + LIMIT;
        let answer = select! {
            biased;
            answer = send(&upstream, copy) => answer,
            () = SystemClock.sleep_until(ends_at) => Err(io::ErrorKind::TimedOut.into()),
        };
        answers.push(answer.unwrap_or_else(|error| error.to_string()));
    }
    answers
}

/// Sends a copy and waits for its answer, so that it has arrived.
async fn send(upstream: &Upstream, copy: &LateCopy) -> io::Result<String> {
    let (from, mut to) = tokio::io::split(upstream.connect().await?);
    let mut inlet = Inlet::new(from, false);
    let mut answer = Vec::new();
    for request in copy.login.iter().chain([&copy.request]) {
        to.write_all(request).await?;
        answer = inlet.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
