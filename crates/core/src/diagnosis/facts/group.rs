use std::time::Duration;

use super::{NotRead, Reading};

/// The Sentinels of an address.
#[derive(Debug)]
pub(crate) struct Group {
    /// The name of the master.
    pub(crate) name: String,
    /// The server that most of them name.
    pub(crate) master: Option<String>,
    /// All that the address lists.
    pub(crate) sentinels: Vec<SentinelFacts>,
}

impl Group {
    /// The Sentinels that answered, with their places.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (&str, &SentinelTold)> {
        self.sentinels.iter().filter_map(|one| Some((&*one.place, one.told.as_ref().ok()?)))
    }

    /// What the Sentinels watch, as far as they told it.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (&str, &Watched)> {
        self.answers()
            .filter_map(|(place, told)| Some((place, told.watched.as_ref()?.as_ref().ok()?)))
    }

    /// The Sentinels that did not tell what they watch, and why.
    pub(crate) fn not_examined(&self) -> impl Iterator<Item = (&str, &NotRead)> {
        self.answers()
            .filter_map(|(place, told)| Some((place, told.watched.as_ref()?.as_ref().err()?)))
    }

    /// After how much silence the first of them takes the master for dead.
    pub(crate) fn down_after(&self) -> Option<Duration> {
        self.watched().filter_map(|(_, watched)| watched.down_after).min()
    }
}

/// What was gathered of one Sentinel.
#[derive(Debug)]
pub(crate) struct SentinelFacts {
    pub(crate) place: String,
    /// The words of the failure if it did not answer.
    pub(crate) told: Result<SentinelTold, String>,
}

/// What a Sentinel has told.
#[derive(Debug)]
pub(crate) struct SentinelTold {
    /// Where it says that the master is; `None` if it knows no master of the name.
    pub(crate) master: Option<String>,
    /// What it watches; `None` if it knows no master of the name.
    pub(crate) watched: Option<Reading<Watched>>,
}

/// What a Sentinel knows of the master that it watches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// How many Sentinels have to agree that the master is down.
    pub(crate) quorum: Option<usize>,
    /// How many replicas it knows.
    pub(crate) replicas: Option<usize>,
    /// How many other Sentinels it knows.
    pub(crate) others: Option<usize>,
    /// After how much silence it takes the master for dead.
    pub(crate) down_after: Option<Duration>,
    /// Whether it takes the master for dead now.
    pub(crate) is_down: bool,
}
