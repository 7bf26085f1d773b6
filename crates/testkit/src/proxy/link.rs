use std::time::Duration;

use leasehold_core::{Clock, SystemClock};
use tokio::{io::split, net::TcpStream, select};

use super::{
    book::Shared, down::Down, hole::Direction, inlet::Inlet, line::Line, outlet::Outlet, up::Up,
    upstream::Stream,
};

/// One connection of a client, and the one behind it.
#[derive(Debug)]
pub(super) struct Link<'a> {
    pub(super) shared: &'a Shared,
    pub(super) id: u64,
    /// Whether messages are whatever one read brings.
    pub(super) raw: bool,
    pub(super) line: Line,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Reset,
}

/// What becomes of a direction after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    /// Everything behind the message is lost.
    Lost,
    End(End),
}

impl Link<'_> {
    /// Passes messages on until either end closes, or a fault does.
    pub(super) async fn run(self, mut client: TcpStream, server: Stream) {
        let end = {
            let (from_client, to_client) = client.split();
            let (from_server, to_server) = split(server);
            let to_server = self.outlet(Direction::ToServer, to_server);
            let to_client = self.outlet(Direction::ToClient, to_client);
            let up = Up::new(&self, Inlet::new(from_client, self.raw), to_server);
            let down = Down::new(&self, Inlet::new(from_server, self.raw), to_client);
            let id = self.id;
            let is_reset =
                self.shared.until(|book| book.links.get(&id).is_none_or(|link| link.is_reset));
            select! {
                biased;
                () = is_reset => End::Reset,
                end = up.run() => end,
                end = down.run() => end,
            }
        };
        if end == End::Reset {
            reset(&client);
        }
    }

    fn outlet<W>(&self, direction: Direction, to: W) -> Outlet<'_, W> {
        Outlet { shared: self.shared, link: self.id, direction, to }
    }

    /// As late as everything is.
    pub(super) async fn latency(&self) {
        let delay = self.shared.book().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
    }
}

/// Lets the client see a reset when its connection is dropped.
pub(super) fn reset(client: &TcpStream) {
    // One that is closed already needs no reset.
    let _ = client.set_zero_linger();
}

pub(super) async fn sleep(length: Duration) {
    SystemClock.sleep_until(SystemClock.now() + length).await;
}
