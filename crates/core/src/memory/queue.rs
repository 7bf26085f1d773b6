use std::{collections::VecDeque, time::Duration};

use super::row::ServerTime;
use crate::{
    store::Heartbeat,
    types::{AcquisitionId, FenceToken, RuntimeId, RuntimeLabel, Ttl},
};

/// The runtimes that wait for a name, in the order of their arrival; one place for each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    places: VecDeque<PlaceRow>,
    ends: ServerTime,
}

/// A place in the queue.
#[derive(Debug, Clone)]
pub(crate) struct PlaceRow {
    pub(crate) id: AcquisitionId,
    pub(crate) heartbeat: u64,
    pub(crate) heard: ServerTime,
    pub(crate) window: Duration,
    pub(crate) watermark: Option<FenceToken>,
    pub(crate) label: RuntimeLabel,
    pub(crate) keeps: bool,
}

impl PlaceRow {
    /// The place of an acquisition with this heartbeat, not heard yet.
    pub(crate) fn new(
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<FenceToken>,
        label: &RuntimeLabel,
        keeps: bool,
        heartbeat: Heartbeat,
    ) -> Self {
        let (window, heard, label) = (heartbeat.window(ttl), ServerTime::default(), label.clone());
        Self { id, heartbeat: heartbeat.number, heard, window, watermark, label, keeps }
    }

    /// Whether the waiter was heard within its claim window.
    pub(crate) fn is_live(&self, now: ServerTime) -> bool {
        now <= self.heard.after(self.window)
    }
}

impl Queue {
    /// How much longer than necessary a queue is kept, so that its end is rarely moved.
    const SPARE: Duration = Duration::from_secs(60);

    /// Forgets all places when the queue's time is over.
    pub(crate) fn expire(&mut self, now: ServerTime) {
        if self.ends <= now {
            self.places.clear();
        }
    }

    /// When nothing of the queue is left.
    pub(crate) fn ends(&self) -> ServerTime {
        if self.places.is_empty() { ServerTime::default() } else { self.ends }
    }

    /// Whether a runtime other than this one has a place, live or dead.
    pub(crate) fn has_others(&self, runtime: RuntimeId) -> bool {
        self.places.iter().any(|place| place.id.runtime() != runtime)
    }

    /// The place of a runtime, unless only its rank is known.
    pub(crate) fn of(&self, runtime: RuntimeId) -> Option<&PlaceRow> {
        let is_known = |place: &&PlaceRow| !place.window.is_zero();
        self.places.iter().find(|place| place.id.runtime() == runtime).filter(is_known)
    }

    pub(crate) fn place(&self, id: AcquisitionId) -> Option<&PlaceRow> {
        self.of(id.runtime()).filter(|place| place.id == id)
    }

    /// How many places stand before that of an acquisition, live or dead.
    pub(crate) fn ahead_of(&self, id: AcquisitionId) -> u64 {
        self.places.iter().take_while(|place| place.id != id).map(|_| 1).sum()
    }

    pub(crate) fn live(&self, now: ServerTime) -> impl Iterator<Item = &PlaceRow> {
        self.places.iter().filter(move |place| place.is_live(now))
    }

    /// The first live place; dead ones before it are removed.
    pub(crate) fn head(&mut self, now: ServerTime) -> Option<&PlaceRow> {
        while self.places.front().is_some_and(|place| !place.is_live(now)) {
            self.places.pop_front();
        }
        self.places.front()
    }

    pub(crate) fn remove(&mut self, mut matches: impl FnMut(&PlaceRow) -> bool) {
        self.places.retain(|place| !matches(place));
    }

    /// Forgets all about the waiters but their order: none is alive until its next heartbeat.
    pub(crate) fn forget_lives(&mut self) {
        for place in &mut self.places {
            (place.heard, place.window) = (ServerTime::default(), Duration::ZERO);
            (place.heartbeat, place.watermark) = (0, None);
        }
    }

    /// Keeps the queue for as long as a place lasts.
    pub(crate) fn keep(&mut self, now: ServerTime, window: Duration) {
        let needed = now.after(window);
        if needed >= self.ends {
            self.ends = needed.after(Self::SPARE);
        }
    }

    /// Refreshes the place of the acquisition, heard now, or queues it at the tail in place of an
    /// older one of its runtime. The greater heartbeat and watermark stay. Call
    /// [`keep`](Self::keep) afterwards.
    pub(crate) fn stand(&mut self, now: ServerTime, place: &PlaceRow) {
        let place = PlaceRow { heard: now, ..place.clone() };
        let id = place.id;
        if self.places.is_empty() {
            self.ends = now.after(place.window);
        }
        // A place that has lost its heartbeat is queued again, as in Redis.
        let is_over = |other: &PlaceRow| other.id != id || other.window.is_zero();
        self.remove(|other| other.id.runtime() == id.runtime() && is_over(other));
        match self.places.iter_mut().find(|other| other.id == id) {
            None => self.places.push_back(place),
            Some(stored) => {
                let heartbeat = place.heartbeat.max(stored.heartbeat);
                let watermark = place.watermark.max(stored.watermark);
                *stored = PlaceRow { heartbeat, watermark, ..place };
            }
        }
    }
}
