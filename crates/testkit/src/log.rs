//! What is logged while a test runs.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{
    Event, Metadata,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Collects every event, as one line of its fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// How many lines hold these words.
    pub(crate) fn count(&self, words: &str) -> usize {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.contains(words)).count()
    }

    /// Whether a line holds these words.
    pub(crate) fn tells(&self, words: &str) -> bool {
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
