use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use tracing::{
    Dispatch, Event, Level, Metadata,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};

/// Collects events, each as one line of its level, target and fields.
#[derive(Debug, Clone)]
pub struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    finest: Level,
}

impl Log {
    /// Collects what this thread logs, until the guard is dropped.
    pub fn of_this_thread() -> (Self, DefaultGuard) {
        Self::down_to(Level::TRACE)
    }

    /// Collects what a service sees of this thread by default: events at `INFO` and above.
    pub fn as_services_see_it() -> (Self, DefaultGuard) {
        Self::down_to(Level::INFO)
    }

    /// Collects what all threads of this process log from now on.
    ///
    /// # Panics
    ///
    /// Panics if the process has a subscriber already.
    pub fn of_this_process() -> Self {
        let log = Self { lines: Arc::default(), finest: Level::INFO };
        tracing::subscriber::set_global_default(log.clone()).expect("the only subscriber");
        log
    }

    fn down_to(finest: Level) -> (Self, DefaultGuard) {
        // With a single subscriber in the process, tracing remembers for good that nobody listens
        // at a place which another thread reaches first. A second one keeps it from that.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        let new = || Self { lines: Arc::default(), finest };
        SECOND.get_or_init(|| Dispatch::new(new()));
        let log = new();
        let collecting = tracing::subscriber::set_default(log.clone());
        (log, collecting)
    }

    /// The lines until now.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines that hold these words.
    pub fn with(&self, words: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(words)).collect()
    }

    /// How many lines hold these words.
    pub fn count(&self, words: &str) -> usize {
        self.with(words).len()
    }

    /// Whether a line holds these words.
    pub fn tells(&self, words: &str) -> bool {
        self.count(words) > 0
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.finest && metadata.target().starts_with("leasehold")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String never fails.
        let _ = write!(self.0, " {field}={value:?}");
    }
}
