use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::Instant;

/// The times in which a process was stopped; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Stops(Arc<Mutex<Vec<(Instant, Instant)>>>);

impl Stops {
    /// Nothing could be done from one instant to another.
    pub fn add(&self, from: Instant, until: Instant) {
        if from < until {
            self.times().push((from, until));
        }
    }

    /// For how long, from one instant to another, nothing could be done.
    pub fn within(&self, from: Instant, until: Instant) -> Duration {
        let overlap = |(began, ended): &(Instant, Instant)| {
            (*ended).min(until).saturating_since((*began).max(from))
        };
        self.times().iter().map(overlap).sum()
    }

    fn times(&self) -> MutexGuard<'_, Vec<(Instant, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
