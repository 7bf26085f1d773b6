//! What is logged while a test runs on one thread.

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

/// Collects every event that a service sees by default, at `INFO` and above, as one line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Collects what this thread logs for as long as the guard lives.
    pub(crate) fn collect() -> (Self, DefaultGuard) {
        // With a single subscriber in the process, tracing takes a place in the code that another
        // thread reaches first for one that nobody listens to: here is a second one, for good.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Self::default()));
        let log = Self::default();
        let collecting = tracing::subscriber::set_default(log.clone());
        (log, collecting)
    }

    /// The lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines that hold these words.
    pub(crate) fn with(&self, words: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(words)).collect()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("leasehold")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
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
