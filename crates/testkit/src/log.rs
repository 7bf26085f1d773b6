use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{
    Event, Metadata,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};

/// Collects every event, as one line of its level, target and fields.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Collects what this thread logs, until the guard is dropped.
    pub fn of_this_thread() -> (Self, DefaultGuard) {
        let log = Self::default();
        let collecting = tracing::subscriber::set_default(log.clone());
        (log, collecting)
    }

    /// The lines until now.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines hold these words.
    pub fn count(&self, words: &str) -> usize {
        self.lines().iter().filter(|line| line.contains(words)).count()
    }

    /// Whether a line holds these words.
    pub fn tells(&self, words: &str) -> bool {
        self.count(words) > 0
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
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
