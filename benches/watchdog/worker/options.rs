use std::{str::FromStr, time::Duration};

use crate::{Failure, arguments::Arguments};

/// What a worker process is told on its command line.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) subject: Subject,
    /// The address that leases are renewed at.
    pub(super) redis: String,
    /// The address of the server itself.
    pub(super) server: String,
    /// How many leases.
    pub(super) leases: usize,
    pub(super) ttl: Duration,
    /// For how long renewals are watched.
    pub(super) measured: Duration,
    /// Which share of the calls fails at random, if any does.
    pub(super) fails: Option<f64>,
}

/// Who renews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The library.
    Leasehold,
    /// A task for each lease.
    TaskEach,
}

impl Options {
    /// Reads `--key value` pairs.
    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut given = Arguments::of(arguments)?;
        let options = Self {
            subject: given.need("subject")?,
            redis: given.need("redis")?,
            server: given.need("server")?,
            leases: given.need("leases")?,
            ttl: Duration::from_millis(given.need("ttl-ms")?),
            measured: Duration::from_secs(given.need("seconds")?),
            fails: given.take("fails")?,
        };
        given.end()?;
        Ok(options)
    }

    /// The name of a lock.
    pub(super) fn name(number: usize) -> String {
        format!("orders/{number}")
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "leasehold" => Ok(Self::Leasehold),
            "task-per-lease" => Ok(Self::TaskEach),
            _ => Err("it is `leasehold` or `task-per-lease`".into()),
        }
    }
}
