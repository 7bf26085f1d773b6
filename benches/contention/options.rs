#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::runtime::{Builder, Runtime};

use self::arguments::Arguments;
use crate::Failure;

#[path = "../arguments.rs"]
mod arguments;

/// How many threads a multi-threaded runtime has; benchmarks run on two cores.
const THREADS: usize = 2;

/// What a worker process is told on its command line.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Which subject.
    pub(crate) peer: String,
    /// The address of the server.
    pub(crate) redis: String,
    /// The name of the lock, or what those of the tasks begin with.
    pub(crate) name: String,
    /// Whether each task has a lock of its own, so that nobody waits.
    pub(crate) own_names: bool,
    /// How many tasks want it.
    pub(crate) workers: usize,
    /// How long each holds it.
    pub(crate) hold: Duration,
    /// How long each pauses after a release.
    pub(crate) pause: Duration,
    /// How long the window is.
    pub(crate) measured: Duration,
    /// Which of the processes of a run this is.
    pub(crate) process: usize,
    /// When the window starts, since 1970.
    pub(crate) start: Duration,
    /// The kind of tokio runtime.
    pub(crate) runtime: Kind,
}

/// A kind of tokio runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What services use.
    Multi,
    /// All on one thread.
    Current,
}

impl Options {
    /// Reads `--key value` pairs.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut given = Arguments::of(arguments)?;
        let millis = |value: u64| Duration::from_millis(value);
        let warmup = Duration::from_secs_f64(given.take("warmup-s")?.unwrap_or(2.0));
        let soon = SystemTime::now().duration_since(UNIX_EPOCH)? + warmup;
        let options = Self {
            peer: given.need("peer")?,
            redis: given.need("redis")?,
            name: given.need("name")?,
            own_names: given.take("own-names")?.unwrap_or(false),
            workers: given.take("workers")?.unwrap_or(1),
            hold: Duration::from_micros(given.take("hold-us")?.unwrap_or(0)),
            pause: millis(given.take("pause-ms")?.unwrap_or(0)),
            measured: Duration::from_secs_f64(given.take("seconds")?.unwrap_or(1.0)),
            process: given.take("process-index")?.unwrap_or(0),
            start: given.take("start-at-unix-ms")?.map_or(soon, millis),
            runtime: given.take("runtime")?.unwrap_or(Kind::Current),
        };
        given.end()?;
        Ok(options)
    }

    /// The name of the lock of each task.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        (0..self.workers).map(|worker| {
            if self.own_names {
                format!("{}/{}/{worker}", self.name, self.process)
            } else {
                self.name.clone()
            }
        })
    }
}

impl Kind {
    /// Builds such a runtime.
    pub(crate) fn build(self) -> std::io::Result<Runtime> {
        match self {
            Self::Multi => Builder::new_multi_thread().worker_threads(THREADS).enable_all().build(),
            Self::Current => Builder::new_current_thread().enable_all().build(),
        }
    }

    /// What results say of it.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Multi => format!("multi-thread, {THREADS} threads"),
            Self::Current => "current-thread".into(),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "multi" => Ok(Self::Multi),
            "current" => Ok(Self::Current),
            _ => Err("it is `multi` or `current`".into()),
        }
    }
}
