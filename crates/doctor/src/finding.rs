use std::{borrow::Cow, fmt};

use leasehold_core::{StoreError, printable};
use tracing::Level;

/// One thing that a diagnosis found: what it is, what it endangers, and what cures it.
///
/// Its texts hold no password.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub topic: Topic,
    /// The promises that it endangers. Empty if it endangers none, also if locks cannot be had.
    pub promises: Vec<Promise>,
    /// The servers of which it was found, as `host:port`. Empty if it is not about one of them.
    pub servers: Vec<String>,
    /// What was found.
    pub what: Cow<'static, str>,
    /// What to do about it.
    pub cure: Cow<'static, str>,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        topic: Topic,
        promises: &[Promise],
        what: impl Into<Cow<'static, str>>,
        cure: impl Into<Cow<'static, str>>,
    ) -> Self {
        // Settings and answers of servers are quoted in them.
        let shown = |text: Cow<'static, str>| printable(&text).into_owned().into();
        let (what, cure) = (shown(what.into()), shown(cure.into()));
        Self { severity, topic, promises: promises.into(), servers: Vec::new(), what, cure }
    }

    /// What an error says, which endangers no promise.
    pub(super) fn of_error(severity: Severity, topic: Topic, error: &StoreError) -> Self {
        Self::new(severity, topic, &[], error.what().to_owned(), error.remedy().to_owned())
    }

    /// The same finding, about a server.
    pub(super) fn at(mut self, server: &str) -> Self {
        self.servers.push(printable(server).into_owned());
        self
    }

    /// Whether another finding differs from this one by its servers only.
    pub(super) fn is_also(&self, other: &Self) -> bool {
        (self.severity, self.topic, &self.promises, &self.what, &self.cure)
            == (other.severity, other.topic, &other.promises, &other.what, &other.cure)
    }

    /// Writes it to the log.
    pub(super) fn log(&self) {
        macro_rules! log {
            ($level:expr) => {
                tracing::event!(
                    target: "leasehold::diagnosis",
                    $level,
                    topic = %self.topic,
                    promises = %self.numbers(),
                    servers = %self.servers.join(", "),
                    cure = %self.cure,
                    "{}",
                    self.what
                )
            };
        }
        match self.severity {
            Severity::Danger => log!(Level::ERROR),
            Severity::Warning => log!(Level::WARN),
            Severity::Notice => log!(Level::INFO),
        }
    }

    /// The promises that it endangers, as `P1, P2`.
    fn numbers(&self) -> String {
        let numbers: Vec<_> = self.promises.iter().map(ToString::to_string).collect();
        numbers.join(", ")
    }

    /// What it is about and how bad, as the head of a paragraph or a sentence.
    pub(super) fn head(&self) -> String {
        let mut head = format!("{}: {}", self.severity, self.topic);
        if !self.promises.is_empty() {
            head = format!("{head} ({})", self.numbers());
        }
        if !self.servers.is_empty() {
            head = format!("{head} at {}", self.servers.join(", "));
        }
        head
    }
}

/// In one line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.head(), self.what, self.cure)
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// No promise is known to be endangered: something could not be examined, or is worth knowing.
    Notice,
    /// A promise fails, or locks cannot be had, if something else happens: a restart, a failover, a
    /// partition, a step of a clock.
    Warning,
    /// A promise fails in ordinary use, or locks cannot be had now.
    Danger,
}

impl Severity {
    /// The severity as one word.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Danger => "danger",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_label())
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Topic {
    /// Whether the server can be reached, and is one that Leasehold can use.
    Reach,
    /// The rights of the user.
    Rights,
    /// Whether scripts run.
    Scripts,
    /// What the server does when its memory is full.
    Eviction,
    /// How much of its memory the locks take.
    Memory,
    /// What is left after a restart.
    Persistence,
    /// The replicas, and what a master does without them.
    Replicas,
    /// The Sentinels.
    Sentinels,
    /// The Cluster and its slots.
    Cluster,
    /// The nodes of a quorum: how many answer, and which of them stay out.
    Quorum,
    /// The server's clock beside that of this process.
    Clock,
    /// How long a round trip takes.
    Latency,
    /// What could not be examined.
    NotExamined,
}

impl Topic {
    /// The topic in a word or two.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Reach => "reach",
            Self::Rights => "rights",
            Self::Scripts => "scripts",
            Self::Eviction => "eviction",
            Self::Memory => "memory",
            Self::Persistence => "persistence",
            Self::Replicas => "replicas",
            Self::Sentinels => "sentinels",
            Self::Cluster => "cluster",
            Self::Quorum => "quorum",
            Self::Clock => "clock",
            Self::Latency => "latency",
            Self::NotExamined => "not examined",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_label())
    }
}

/// A promise of Leasehold, by its number in `docs/guarantees.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Promise {
    /// P1: at most one holder believes that it holds a lock.
    OneBeliever,
    /// P2: fences only grow.
    FencesGrow,
    /// P3: a re-entry is the same lease.
    ReentryIsTheSameLease,
    /// P4: a command that runs twice ends in the same state.
    TwiceIsOnce,
    /// P5: a loss is told before the server can grant the lock to another.
    LossIsTold,
    /// P6: an answer that is missing is not a loss.
    UnknownIsNotLost,
    /// P7: first come, first served.
    FirstComeFirstServed,
    /// P8: nothing dead holds a lock for long.
    NothingHoldsForLong,
    /// P9: nothing leaks.
    NothingLeaks,
    /// P10: a call ends when it says.
    ACallEnds,
}

impl Promise {
    /// The number of the promise, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// As `P1`.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_have_the_numbers_of_the_page() {
        assert_eq!(Promise::OneBeliever.to_string(), "P1");
        assert_eq!(Promise::FencesGrow.to_string(), "P2");
        assert_eq!(Promise::FirstComeFirstServed.to_string(), "P7");
        assert_eq!(Promise::ACallEnds.to_string(), "P10");
    }
}
