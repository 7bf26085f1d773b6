use redis::{Client, Connection};

use crate::Failure;

/// Counts the commands that a server executed for its clients.
pub(super) struct Server(Connection);

impl Server {
    /// Connects.
    pub(super) fn at(url: &str) -> Result<Self, Failure> {
        Ok(Self(Client::open(url)?.get_connection()?))
    }

    /// How many scripts were called; what they call themselves does not count.
    pub(super) fn scripts_called(&mut self) -> Result<u64, Failure> {
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut self.0)?;
        let calls = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            if !matches!(name, "evalsha" | "eval") {
                return None;
            }
            rest.split(',').next()?.parse::<u64>().ok()
        };
        Ok(stats.lines().filter_map(calls).sum())
    }
}
