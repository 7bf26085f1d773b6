use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    answers, belief, blocks::Blocks, closed, deed::Deed, event::Event, fences, idle, losses, order,
    reuse, steady, storage, summary::Summary, turns, violation::Violation, waiting,
};

/// What happened to one lock, recorded by all who used it; clones are the same history.
///
/// The check takes `O(n log n)`: fence tokens already give the order that a checker of arbitrary
/// histories would have to search for.
#[derive(Debug, Clone, Default)]
pub struct History {
    events: Arc<Mutex<Vec<Event>>>,
}

impl History {
    /// A history in which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event; those of one worker in the order in which they happened to it.
    pub fn record(&self, event: Event) {
        self.lock().push(event);
    }

    /// The events so far.
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Whether the history could be one of a correct lock. Overlaps of belief are reported and not
    /// judged: between processes that pause, they happen to every lock.
    ///
    /// # Errors
    ///
    /// Every [`Violation`] that was found, except [`Violation::TwoBelievers`].
    pub fn check(&self) -> Result<Summary, Vec<Violation>> {
        self.judge(false)
    }

    /// Like [`check`](Self::check), where a server may lose a turn unseen, with its data or in a failover:
    /// the process hands older tokens on for a moment, of which a storage takes none after a newer one.
    ///
    /// # Errors
    ///
    /// Every [`Violation`] that was found but for these tokens.
    pub fn check_with_lost_turns(&self) -> Result<Summary, Vec<Violation>> {
        let found = match self.check() {
            Ok(summary) => return Ok(summary),
            Err(found) => found,
        };
        let late = found.iter().filter_map(|violation| match violation {
            Violation::TokenFell { later: (lease, _), .. } => Some(*lease),
            _ => None,
        });
        let late: BTreeSet<_> = late.collect();
        let is_late =
            |event: &Event| matches!(event, Event::Granted { lease, .. } if late.contains(lease));
        self.events().into_iter().filter(|event| !is_late(event)).collect::<Self>().check()
    }

    /// Like [`check`](Self::check), where no two leases may be believed in at once: in virtual
    /// time, or where no process was paused and no data lost.
    ///
    /// # Errors
    ///
    /// Every [`Violation`] that was found.
    pub fn check_strictly(&self) -> Result<Summary, Vec<Violation>> {
        self.judge(true)
    }

    fn judge(&self, strict: bool) -> Result<Summary, Vec<Violation>> {
        let events = self.events();
        let (mut summary, mut violations) = (Summary::default(), Vec::new());
        summary.asked = events.iter().filter(|event| matches!(event, Event::Asked { .. })).count();
        let blocks = Blocks::gather(&events);
        summary.leases = fences::check(&events, &blocks, &mut violations);
        storage::check(&events, &mut summary, &mut violations);
        let beliefs = belief::gather(&events, &blocks, &mut summary);
        let times = beliefs.values().map(|belief| (belief.from, belief.end()));
        // A lock that stays closed makes nobody wait in vain.
        let times = times.chain(closed::times(&events));
        waiting::check(&events, times, &mut summary, &mut violations);
        belief::check(&events, beliefs, &mut summary);
        turns::check(&events, &blocks, &mut violations);
        reuse::check(&events, &blocks, &mut violations);
        order::check(&events, &blocks, &mut violations);
        summary.kept = closed::check(&events, &blocks, &mut violations);
        answers::check(&events, &mut violations);
        steady::check(&events, &blocks, &mut violations);
        idle::check(&events, &blocks, &mut violations);
        losses::check(&events, &blocks, &mut violations);
        (summary.turns, summary.aside) = (blocks.iter().count(), blocks.aside());
        (summary.takeovers, summary.behind) = takeovers(&events);
        if strict {
            violations.extend(summary.overlaps.iter().cloned().map(Violation::TwoBelievers));
        }
        if violations.is_empty() { Ok(summary) } else { Err(violations) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often another server became the master, and how often it lacked something.
fn takeovers(events: &[Event]) -> (usize, usize) {
    let is_behind = |event: &Event| match event {
        Event::Spied { deed: Deed::TookOver { is_behind, .. }, .. } => Some(*is_behind),
        _ => None,
    };
    let all: Vec<bool> = events.iter().filter_map(is_behind).collect();
    (all.len(), all.iter().filter(|is_behind| **is_behind).count())
}

impl FromIterator<Event> for History {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        Self { events: Arc::new(Mutex::new(events.into_iter().collect())) }
    }
}
