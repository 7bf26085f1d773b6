#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    collections::HashMap,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::runtime::{Builder, Runtime};

use crate::Failure;

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
        let mut given = Given::of(arguments)?;
        let millis = |value: u64| Duration::from_millis(value);
        let warmup = Duration::from_secs_f64(given.or("warmup-s", 2.0)?);
        let soon = SystemTime::now().duration_since(UNIX_EPOCH)? + warmup;
        let options = Self {
            peer: given.text("peer")?,
            redis: given.text("redis")?,
            name: given.text("name")?,
            own_names: given.or("own-names", false)?,
            workers: given.or("workers", 1)?,
            hold: Duration::from_micros(given.or("hold-us", 0)?),
            pause: millis(given.or("pause-ms", 0)?),
            measured: Duration::from_secs_f64(given.or("seconds", 1.0)?),
            process: given.or("process-index", 0)?,
            start: given.take("start-at-unix-ms")?.map_or(soon, millis),
            runtime: given.or("runtime", Kind::Current)?,
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

/// What was given and is not yet read.
struct Given<'a>(HashMap<&'a str, &'a str>);

impl<'a> Given<'a> {
    fn of(arguments: &'a [String]) -> Result<Self, Failure> {
        let (pairs, rest) = arguments.as_chunks::<2>();
        if let Some(odd) = rest.first() {
            return Err(format!("{odd} has no value").into());
        }
        let named = |[key, value]: &'a [String; 2]| {
            let key = key.strip_prefix("--").ok_or_else(|| format!("{key} is no option"))?;
            Ok::<_, Failure>((key, value.as_str()))
        };
        Ok(Self(pairs.iter().map(named).collect::<Result<_, _>>()?))
    }

    fn text(&mut self, key: &str) -> Result<String, Failure> {
        self.take(key)?.ok_or_else(|| format!("--{key} is missing").into())
    }

    fn or<T>(&mut self, key: &str, otherwise: T) -> Result<T, Failure>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        Ok(self.take(key)?.unwrap_or(otherwise))
    }

    fn take<T>(&mut self, key: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let Some(text) = self.0.remove(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|error| format!("--{key} {text}: {error}").into())
    }

    fn end(self) -> Result<(), Failure> {
        match self.0.keys().next() {
            Some(key) => Err(format!("there is no --{key}").into()),
            None => Ok(()),
        }
    }
}
