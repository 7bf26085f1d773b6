use std::io;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    select,
};

use super::{
    action::Action,
    inlet::Inlet,
    line::{Asked, Heard},
    link::{End, Flow, Link, sleep},
    message::{Message, Side},
    outlet::Outlet,
};

/// The replies and pushes of one connection, on their way to the client.
#[derive(Debug)]
pub(super) struct Down<'a, R, W> {
    link: &'a Link<'a>,
    inlet: Inlet<R>,
    outlet: Outlet<'a, W>,
}

impl<'a, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Down<'a, R, W> {
    pub(super) fn new(link: &'a Link<'a>, inlet: Inlet<R>, outlet: Outlet<'a, W>) -> Self {
        Self { link, inlet, outlet }
    }

    /// Passes on what the server says for as long as it does.
    pub(super) async fn run(mut self) -> End {
        let mut lost = false;
        while let Ok(Some(message)) = self.next(lost).await {
            if lost {
                self.link.shared.book().counts.lost_behind += 1;
                continue;
            }
            if self.inlet.was_read() {
                self.link.latency().await;
            }
            match self.pass(&message).await {
                Ok(Flow::On) => {}
                Ok(Flow::Lost) => lost = true,
                Ok(Flow::End(end)) => return end,
                Err(_) => break,
            }
        }
        self.outlet.open().await;
        End::Closed
    }

    /// The next message of the server, after the proxy's own answers whose turn it is.
    async fn next(&mut self, lost: bool) -> io::Result<Option<Vec<u8>>> {
        loop {
            while let Some(answer) = self.link.line.own_answer() {
                if !lost {
                    self.outlet.send(&answer).await?;
                }
            }
            select! {
                biased;
                () = self.link.line.answered.notified() => {}
                message = self.inlet.next() => return message,
            }
        }
    }

    async fn pass(&mut self, message: &[u8]) -> io::Result<Flow> {
        let (side, asked) = self.hear(message);
        if asked.is_copy {
            return Ok(Flow::On);
        }
        let text = if side == Side::Push { message } else { &asked.text };
        let action = self.link.shared.book().strike(&Message { side, kinds: &asked.kinds, text });
        match action {
            Some(Action::Drop) if side == Side::Push => return Ok(Flow::On),
            Some(Action::Drop) => return Ok(Flow::Lost),
            Some(Action::Delay(delay)) => sleep(delay).await,
            Some(Action::Hold(gate)) => gate.pass().await,
            // Of a push; there is no such rule for replies.
            Some(Action::Duplicate) => self.outlet.send(message).await?,
            Some(Action::Answer(bytes)) => {
                self.outlet.send(&bytes).await?;
                return Ok(Flow::On);
            }
            Some(Action::Reset) => return Ok(Flow::End(End::Reset)),
            Some(Action::Cut) => {
                self.outlet.send(&message[..message.len() / 2]).await?;
                return Ok(Flow::End(End::Closed));
            }
            Some(Action::CopyLater) | None => {}
        }
        self.outlet.send(message).await?;
        Ok(Flow::On)
    }

    fn hear(&self, message: &[u8]) -> (Side, Asked) {
        if self.link.raw {
            return (Side::Reply, Asked::default());
        }
        match self.link.line.hear(message) {
            Heard::Push => (Side::Push, Asked::default()),
            Heard::Reply(asked) => (Side::Reply, asked),
        }
    }
}
