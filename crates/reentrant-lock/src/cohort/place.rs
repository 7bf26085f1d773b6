use std::{collections::VecDeque, time::Duration};

use leasehold_core::{
    AcquisitionId, Instant, StoreError, Ttl,
    lease::Grant,
    store::{Heartbeat, Place as Told, Waiter},
};

use super::moment::Moment;

/// An acquisition that stands in the queue of Redis, or is on its way there.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) id: AcquisitionId,
    pub(super) ttl: Ttl,
    /// When the latest heartbeats were sent, by number: a grant counts from the one it names.
    sent: VecDeque<(u64, Instant)>,
    /// When the last heartbeat was sent that was answered "not yet".
    pub(super) answered: Instant,
    /// The heartbeat whose answer is awaited.
    pub(super) awaited: Option<u64>,
    next_at: Instant,
    /// From when on the next heartbeat may travel with others that are due.
    early_at: Instant,
    /// A grant that is being confirmed before anybody believes in it.
    pub(super) confirming: Option<Grant>,
    pub(super) ahead: Option<u64>,
    failures: u32,
    pub(super) last_error: Option<StoreError>,
    /// A copy of a command was not answered, and may still be executed.
    pub(super) uncertain: bool,
}

impl Place {
    /// How many heartbeats are remembered; more than are sent within a claim window.
    const REMEMBERED: usize = 16;

    /// A place to be asked for at once.
    pub(super) fn wanted(m: &Moment<'_>, id: AcquisitionId, ttl: Ttl) -> Self {
        Self {
            id,
            ttl,
            sent: VecDeque::new(),
            answered: Instant::default(),
            awaited: None,
            next_at: m.now,
            early_at: m.now,
            confirming: None,
            ahead: None,
            failures: 0,
            last_error: None,
            uncertain: false,
        }
    }

    /// The same place, after a sign of life was sent with another command.
    pub(super) fn with_sent(mut self, number: u64, sent_at: Instant) -> Self {
        self.remember(number, sent_at);
        self
    }

    /// The same place, of whose commands some may still be executed.
    pub(super) fn uncertain(self, uncertain: bool) -> Self {
        Self { uncertain: self.uncertain || uncertain, ..self }
    }

    /// When the next heartbeat is due; `None` while an answer is awaited.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.awaited.is_none() && self.confirming.is_none()).then_some(self.next_at)
    }

    /// Whether the next heartbeat may be sent.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some() && self.early_at <= now
    }

    /// When the next heartbeat is to be sent.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The next heartbeat is to be sent then.
    pub(super) fn ask_at(&mut self, at: Instant) {
        self.next_at = at;
        self.early_at = at;
    }

    /// Sends the next heartbeat.
    pub(super) fn beat(&mut self, m: &Moment<'_>) -> Beat {
        let number = m.numbers.change();
        self.remember(number, m.now);
        self.awaited = Some(number);
        let heartbeat = Heartbeat { number, claim_window: m.claim_window(self.ttl) };
        let (name, id, ttl) = (m.name.clone(), self.id, self.ttl);
        let waiter = Waiter { name, id, ttl, watermark: None, heartbeat };
        Beat { waiter, sent_at: m.now }
    }

    /// A command that was sent at `sent_at` was answered "not yet".
    pub(super) fn told(&mut self, m: &Moment<'_>, sent_at: Instant, told: Told) {
        self.answered = self.answered.max(sent_at);
        self.ahead = Some(told.ahead);
        self.failures = 0;
        self.last_error = None;
        // When the present lease runs out it is worth asking again.
        let over = m.now + told.remaining + A_TICK;
        let regular = m.next_heartbeat(sent_at, self.ttl);
        self.ask_at(regular.min(over));
        if regular < over {
            self.early_at = regular - m.claim_window(self.ttl) / 16;
        }
    }

    /// A command failed in a way that waiting may mend.
    pub(super) fn failed(&mut self, m: &Moment<'_>, error: StoreError) {
        self.ask_at(m.retry(self.failures, self.ttl));
        self.failures += 1;
        self.last_error = Some(error);
    }

    /// When a heartbeat was sent; `None` for one that is forgotten, or none of this place.
    pub(super) fn sent_at(&self, number: u64) -> Option<Instant> {
        self.sent.iter().find(|(known, _)| *known == number).map(|(_, at)| *at)
    }

    fn remember(&mut self, number: u64, at: Instant) {
        if self.sent.len() == Self::REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((number, at));
    }
}

/// Redis tells times to live in whole milliseconds.
const A_TICK: Duration = Duration::from_millis(1);

/// A heartbeat to be sent.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) waiter: Waiter,
    pub(crate) sent_at: Instant,
}
