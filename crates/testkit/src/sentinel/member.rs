use std::{collections::BTreeMap, fmt, thread, time::Duration};

use redis::{FromRedisValue, RedisResult, Value};
use tempfile::TempDir;

use super::{launch::Launch, sentinel_group::SentinelGroup};
use crate::{
    RedisServer, folder,
    guardian::Ward,
    launched,
    process::Process,
    server::{LIMIT, connect_to, free_port, number_in, query},
};

/// A Sentinel process of one group, killed when dropped.
///
/// It lives in a temporary folder. Its log is printed when a start fails and when the test that
/// owns it panics.
pub struct Sentinel {
    // Before the folder: the process ends first.
    process: Process,
    launch: Launch,
    _folder: TempDir,
}

impl Sentinel {
    /// How long the group waits for one answer, before it counts the Sentinel as silent.
    const SILENCE: Duration = Duration::from_millis(500);

    /// Starts a Sentinel that watches a master with a port; it speaks TLS if the master does.
    pub(super) fn start(master: &RedisServer) -> Self {
        let folder = folder::in_memory();
        let (program, place) = (master.program().to_owned(), folder.path().to_owned());
        let certificates = master.ca_pem().map(|_| master.folder().to_owned());
        let port = master.port().expect("a master has a port");
        let mut launch = Launch { program, folder: place, port: 0, master: port, certificates };
        let process = launched::on_free_port("a Sentinel", &launch.log_path(), || {
            launch.port = free_port();
            launch.run()
        });
        Self { process, launch, _folder: folder }
    }

    /// The address of the Sentinel.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// The port of 127.0.0.1 with TLS, of one that speaks it.
    pub(super) fn tls_port(&self) -> Option<u16> {
        self.launch.certificates.as_ref().map(|_| self.port() + Launch::TLS)
    }

    /// The port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.launch.port
    }

    /// The id of the Sentinel's process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What the Sentinel has written to its log.
    pub fn log(&self) -> String {
        launched::text_of(&self.launch.log_path())
    }

    /// Stops the Sentinel with `SIGSTOP` and returns when it stands still: connections stay open
    /// and nothing is answered.
    ///
    /// # Panics
    ///
    /// Panics if the Sentinel has ended.
    pub fn pause(&self) {
        self.process.stop();
    }

    /// Lets a stopped Sentinel go on with `SIGCONT`.
    pub fn resume(&self) {
        self.process.cont();
    }

    /// Runs a command on a connection of its own and returns the answer.
    ///
    /// It blocks its thread for as long as the Sentinel takes.
    ///
    /// # Panics
    ///
    /// Panics if the Sentinel refuses the command or does not answer within five seconds.
    pub fn command(&self, command: &[&str]) -> Value {
        self.query(command)
    }

    /// Like [`command`](Self::command), with the answer as a type of redis-rs.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does, and if the answer is of another type.
    pub fn query<T: FromRedisValue>(&self, command: &[&str]) -> T {
        self.try_query(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// A number that the Sentinel tells of itself in a section of `INFO`; 0 where it does not.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does, and if it is no number.
    pub fn told(&self, section: &str, field: &str) -> u64 {
        number_in(&self.query::<String>(&["INFO", section]), field)
    }

    /// Like [`query`](Self::query), with the refusal as an error.
    ///
    /// # Errors
    ///
    /// The error of redis-rs, of the connection or of the command.
    pub fn try_query<T: FromRedisValue>(&self, command: &[&str]) -> RedisResult<T> {
        query(&mut connect_to(&self.url(), LIMIT)?, command)
    }

    /// The port of the master that the Sentinel names now, if it answers.
    pub(super) fn named_port(&self) -> Option<u16> {
        let mut connection = connect_to(&self.url(), Self::SILENCE).ok()?;
        let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelGroup::MASTER];
        let (_, port) = query::<Option<(String, u16)>>(&mut connection, &command).ok()??;
        Some(port)
    }

    /// Whether the Sentinel is connected to this many others of a kind: `SENTINEL REPLICAS` tells
    /// of those with the flag `slave`, `SENTINEL SENTINELS` of those with `sentinel`.
    pub(super) fn is_connected_to(&self, count: usize, kind: &str, flag: &str) -> bool {
        let command = ["SENTINEL", kind, SentinelGroup::MASTER];
        let known = self.try_query::<Vec<BTreeMap<String, String>>>(&command).unwrap_or_default();
        // Another flag, such as `disconnected`, tells that it is not.
        let is_well = |one: &&BTreeMap<_, _>| one.get("flags").is_some_and(|flags| flags == flag);
        known.iter().filter(is_well).count() == count
    }
}

impl<'a> From<&'a Sentinel> for Ward<'a> {
    fn from(sentinel: &'a Sentinel) -> Self {
        Self { pid: sentinel.pid(), folder: &sentinel.launch.folder }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- log of the Sentinel at {} ---\n{}---", self.url(), self.log());
        }
    }
}

impl fmt::Debug for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinel").field("url", &self.url()).finish_non_exhaustive()
    }
}
