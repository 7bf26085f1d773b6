use std::{borrow::Cow, fmt};

use tracing::Level;

use super::{Promise, Severity, Topic};
use crate::types::printable;

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
    /// The promises that it endangers. None if locks cannot be had, but no promise is broken.
    pub promises: Vec<Promise>,
    /// The servers of which it was found, as `host:port`. None if it is not about one of them.
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
        what: impl Into<Cow<'static, str>>,
        cure: impl Into<Cow<'static, str>>,
    ) -> Self {
        // Settings and answers of servers are quoted in them.
        let shown = |text: Cow<'static, str>| printable(&text).into_owned().into();
        let (what, cure) = (shown(what.into()), shown(cure.into()));
        Self { severity, topic, promises: Vec::new(), servers: Vec::new(), what, cure }
    }

    /// The same finding, with the promises that it endangers.
    pub(super) fn endangers(self, promises: &[Promise]) -> Self {
        Self { promises: promises.into(), ..self }
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
