#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{path::Path, time::Instant};

use redis::{Client, Connection};

use crate::Failure;

/// What only clients send: no script of any subject calls it.
const BY_CLIENTS: [&str; 10] = [
    "auth",
    "client",
    "eval",
    "evalsha",
    "hello",
    "ping",
    "script",
    "select",
    "subscribe",
    "unsubscribe",
];

/// Counts the commands that clients send; the server's own counts have the calls inside scripts,
/// too.
pub(crate) struct Calls(Connection);

/// So many commands until an instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(Instant, u64);

impl Calls {
    /// Asks a server through its unix socket.
    pub(crate) fn at(socket: &Path) -> Result<Self, Failure> {
        let client = Client::open(format!("redis+unix://{}", socket.display()))?;
        Ok(Self(client.get_connection()?))
    }

    /// Forgets all data.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(redis::cmd("FLUSHALL").exec(&mut self.0)?)
    }

    /// How many commands the clients of a subject have sent.
    pub(crate) fn count(&mut self, subject: &str) -> Result<Count, Failure> {
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut self.0)?;
        let calls = stats.lines().filter_map(parsed);
        let sent = calls.filter(|(name, _)| is_sent(name, subject)).map(|(_, calls)| calls).sum();
        Ok(Count(Instant::now(), sent))
    }
}

impl Count {
    /// Commands per second since an earlier count.
    #[expect(clippy::cast_precision_loss, reason = "a count of a few seconds is small")]
    pub(crate) fn rate_since(&self, earlier: &Self) -> f64 {
        (self.1 - earlier.1) as f64 / (self.0 - earlier.0).as_secs_f64()
    }
}

/// A command's name and the calls of it, of a line as `cmdstat_client|setinfo:calls=2,usec=…`.
fn parsed(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    Some((name.split('|').next()?, rest.split(',').next()?.parse().ok()?))
}

fn is_sent(command: &str, subject: &str) -> bool {
    // rslock locks with SET, and its script that unlocks does not call it.
    BY_CLIENTS.contains(&command) || command == "set" && subject.starts_with("rslock")
}
