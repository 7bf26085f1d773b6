use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    action::Action,
    inlet::Inlet,
    library,
    line::Asked,
    link::{End, Flow, Link, sleep},
    message::{Message, Side, words},
    outlet::Outlet,
    replay::LateCopy,
};

/// The requests of one connection, on their way to the server.
#[derive(Debug)]
pub(super) struct Up<'a, R, W> {
    link: &'a Link<'a>,
    inlet: Inlet<R>,
    outlet: Outlet<'a, W>,
    /// What has to be said again on another connection before a copy of a request.
    login: Vec<Vec<u8>>,
}

impl<'a, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Up<'a, R, W> {
    /// The most requests that are said again.
    const MOST_LOGINS: usize = 8;

    pub(super) fn new(link: &'a Link<'a>, inlet: Inlet<R>, outlet: Outlet<'a, W>) -> Self {
        Self { link, inlet, outlet, login: Vec::new() }
    }

    /// Passes requests on for as long as there are any.
    pub(super) async fn run(mut self) -> End {
        let mut lost = false;
        while let Ok(Some(request)) = self.inlet.next().await {
            if lost {
                self.link.shared.book().counts.lost_behind += 1;
                continue;
            }
            if self.inlet.was_read() {
                self.link.latency().await;
            }
            match self.pass(&request).await {
                Ok(Flow::On) => {}
                Ok(Flow::Lost) => lost = true,
                Ok(Flow::End(end)) => return end,
                Err(_) => break,
            }
        }
        self.outlet.open().await;
        End::Closed
    }

    async fn pass(&mut self, request: &[u8]) -> io::Result<Flow> {
        let asked = self.look_at(request);
        let message = Message { side: Side::Request, kinds: &asked.kinds, text: request };
        let action = self.link.shared.book().strike(&message);
        match action {
            Some(Action::Drop) => return Ok(Flow::Lost),
            Some(Action::Delay(delay)) => sleep(delay).await,
            Some(Action::Hold(gate)) => gate.pass().await,
            Some(Action::Duplicate) => {
                self.forward(asked.clone(), request).await?;
                return self.forward(asked.copy(), request).await;
            }
            Some(Action::CopyLater) => {
                let copy = LateCopy { login: self.login.clone(), request: request.to_vec() };
                self.link.shared.book().keep(copy);
            }
            Some(Action::Answer(bytes)) => {
                self.link.line.ask(asked.answered_with(bytes));
                return Ok(Flow::On);
            }
            Some(Action::Reset) => return Ok(Flow::End(End::Reset)),
            Some(Action::Cut) => {
                self.outlet.send(&request[..request.len() / 2]).await?;
                return Ok(Flow::End(End::Closed));
            }
            None => {}
        }
        self.forward(asked, request).await
    }

    /// Takes down what a request says of its connection.
    fn look_at(&mut self, request: &[u8]) -> Asked {
        if self.link.raw {
            return Asked::default();
        }
        let words = words(request);
        let kinds = library::kinds(&words);
        let first = words.first().copied().unwrap_or_default();
        let is = |verb: &str| first.eq_ignore_ascii_case(verb.as_bytes());
        if is("HELLO") && words.get(1) == Some(&&b"3"[..]) {
            self.link.line.speak_resp3();
        }
        if (is("HELLO") || is("AUTH") || is("SELECT")) && self.login.len() < Self::MOST_LOGINS {
            self.login.push(request.to_vec());
        }
        let asked = Asked::new(kinds, request, &words);
        let mut book = self.link.shared.book();
        if let Some(link) = book.links.get_mut(&self.link.id) {
            link.carried.extend(&asked.kinds);
            link.subscribed |= asked.subscribes();
        }
        asked
    }

    async fn forward(&mut self, asked: Asked, request: &[u8]) -> io::Result<Flow> {
        self.outlet.open().await;
        if !self.link.raw {
            // In the line before the server can answer.
            self.link.line.ask(asked);
        }
        self.outlet.send(request).await?;
        Ok(Flow::On)
    }
}
