use std::{fmt, time::Duration};

use super::{
    ClockOffset,
    facts::{ServerFacts, Told},
};

/// A server that was examined, and what it told of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExaminedServer {
    /// Where it listens, as `host:port`, or its unix socket.
    pub server: String,
    /// Its name and version, as `redis 7.0.15`; `None` if it could not be reached.
    pub version: Option<String>,
    /// How many replicas it sees.
    pub replicas: Option<usize>,
    /// The median of a few round trips.
    pub round_trip: Option<Duration>,
    /// How far its clock is from that of this process.
    pub clock: Option<ClockOffset>,
}

impl ExaminedServer {
    pub(super) fn of(facts: &ServerFacts) -> Self {
        let told = facts.told.as_ref().ok();
        let timing = told.and_then(|told| told.timing.as_ref().ok());
        Self {
            server: facts.place.clone(),
            version: told.map(|told| told.version.to_string()),
            replicas: told.and_then(Told::replicas),
            round_trip: timing.map(|timing| timing.round_trip),
            clock: timing.map(|timing| timing.offset),
        }
    }
}

/// In one line.
impl fmt::Display for ExaminedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, version, replicas, round_trip, clock } = self;
        let Some(version) = version else { return write!(f, "{server}: not reached") };
        write!(f, "{server}: {version}")?;
        match replicas {
            Some(1) => f.write_str(", 1 replica")?,
            Some(replicas) => write!(f, ", {replicas} replicas")?,
            None => f.write_str(", replicas unknown")?,
        }
        if let Some(round_trip) = round_trip {
            write!(f, ", round trip {round_trip:.1?}")?;
        }
        if let Some(clock) = clock {
            write!(f, ", clock {clock}")?;
        }
        Ok(())
    }
}
