use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use crate::{
    clock::Instant,
    durations::QUEUE_SPARE,
    store::Heartbeat,
    types::{AcquisitionId, Fence, LockName, NameMap, RuntimeId, RuntimeLabel, Ttl},
};

/// The state of one name; parts that have expired count as absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(super) lease: Option<LeaseRow>,
    pub(super) counter: Option<CounterRow>,
    queue: Queue,
    withdrawn: Vec<(AcquisitionId, Instant)>,
}

/// A lease, as the text of the same name in Redis.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRow {
    pub(crate) id: AcquisitionId,
    pub(crate) fence: Fence,
    pub(crate) last: Fence,
    pub(crate) holds: u32,
    pub(crate) hold_number: u64,
    pub(crate) label: RuntimeLabel,
    pub(crate) since: Instant,
    pub(crate) kept: bool,
    pub(crate) keeps: bool,
    pub(crate) ends: Instant,
}

impl LeaseRow {
    /// Whether a command that names this acquisition and fence is about the lease.
    pub(crate) fn is(&self, id: AcquisitionId, fence: Fence) -> bool {
        (self.id, self.fence) == (id, fence)
    }

    /// Whether the holder's runtime may keep the lock idle, so that it has to be recalled.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps && !self.kept
    }
}

/// A fence counter; without an end under [`FencePolicy::Counter`](crate::FencePolicy::Counter).
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterRow {
    pub(crate) last: u64,
    pub(crate) ends: Option<Instant>,
}

impl Row {
    pub(crate) fn lease(&mut self, now: Instant) -> Option<&mut LeaseRow> {
        if self.lease.as_ref().is_some_and(|lease| lease.ends <= now) {
            self.lease = None;
        }
        self.lease.as_mut()
    }

    pub(crate) fn queue(&mut self, now: Instant) -> &mut Queue {
        self.queue.expire(now);
        &mut self.queue
    }

    /// The last token granted, or 0 when the counter is not known.
    pub(crate) fn counted(&self, now: Instant) -> u64 {
        self.counter(now).map_or(0, |counter| counter.last)
    }

    pub(crate) fn counter(&self, now: Instant) -> Option<CounterRow> {
        self.counter.filter(|counter| counter.ends.is_none_or(|ends| ends > now))
    }

    pub(crate) fn is_withdrawn(&mut self, now: Instant, id: AcquisitionId) -> bool {
        self.withdrawn.retain(|(_, ends)| *ends > now);
        self.withdrawn.iter().any(|(withdrawn, _)| *withdrawn == id)
    }

    pub(crate) fn mark_withdrawn(&mut self, now: Instant, id: AcquisitionId, ends: Instant) {
        self.withdrawn.retain(|(other, ends)| *ends > now && *other != id);
        self.withdrawn.push((id, ends));
    }

    pub(crate) fn lose(&mut self, part: Part) {
        match part {
            Part::Lock => (self.lease, self.counter) = (None, None),
            Part::Queue => self.queue = Queue::default(),
            Part::Waiters => self.queue.forget_lives(),
            Part::Marks => self.withdrawn.clear(),
        }
    }

    /// When nothing of the row is left; `None` for a counter that lives for ever.
    pub(crate) fn ends(&self) -> Option<Instant> {
        let counter = match self.counter {
            Some(CounterRow { ends: None, .. }) => return None,
            Some(CounterRow { ends: Some(ends), .. }) => ends,
            None => Instant::default(),
        };
        let lease = self.lease.as_ref().map(|lease| lease.ends);
        let marks = self.withdrawn.iter().map(|(_, ends)| *ends);
        Some(marks.chain(lease).chain([self.queue.ends()]).fold(counter, Ord::max))
    }
}

/// A part of what the embedded store keeps of a name, for tests that lose one alone. Each is a key
/// in Redis, which can be evicted alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who holds the lock, and the fence counter.
    Lock,
    /// The order of the waiters.
    Queue,
    /// The places of the waiters: until its next heartbeat, none of them counts as alive.
    Waiters,
    /// The marks of withdrawn acquisitions.
    Marks,
}

/// The rows of all names; a row goes when nothing of it is left. Instants here are times since the Unix epoch, as
/// a server has them, not those of a local clock.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    rows: NameMap<Row>,
    /// When each of the rows ends that has an end.
    ends: BTreeSet<(Instant, LockName)>,
}

impl Keyspace {
    /// Applies a rule to the row of a name, and forgets rows whose time is over.
    pub(crate) fn with<T>(
        &mut self,
        now: Instant,
        name: &LockName,
        rule: impl FnOnce(&mut Row) -> T,
    ) -> T {
        self.forget_ended(now);
        let row = self.rows.entry(name.clone()).or_default();
        let before = row.ends();
        let answer = rule(row);
        let after = row.ends();
        if let Some(before) = before.filter(|before| Some(*before) != after) {
            self.ends.remove(&(before, name.clone()));
        }
        match after {
            // Nothing is left, or nothing ever was: a look at an unknown name.
            Some(after) if after <= now => drop(self.rows.remove(name)),
            Some(after) => drop(self.ends.insert((after, name.clone()))),
            None => {}
        }
        answer
    }

    /// The names that have a row at `now`, in order.
    pub(crate) fn names(&mut self, now: Instant) -> Vec<LockName> {
        self.forget_ended(now);
        let mut names: Vec<LockName> = self.rows.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// How many names have a row at `now`.
    pub(crate) fn len(&mut self, now: Instant) -> usize {
        self.forget_ended(now);
        self.rows.len()
    }

    /// Forgets everything, as `FLUSHALL` would.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
    }

    fn forget_ended(&mut self, now: Instant) {
        while let Some((_, name)) = self.ends.first().filter(|(ends, _)| *ends <= now) {
            self.rows.remove(name);
            self.ends.pop_first();
        }
    }
}

/// The runtimes that wait for a name, in the order of their arrival; one place for each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    places: VecDeque<PlaceRow>,
    ends: Instant,
}

/// A place in the queue, or an acquisition that asks for one.
#[derive(Debug, Clone)]
pub(crate) struct PlaceRow {
    pub(crate) id: AcquisitionId,
    pub(crate) ttl: Ttl,
    pub(crate) heartbeat: u64,
    /// When it queued.
    pub(crate) arrived: Instant,
    pub(crate) heard: Instant,
    pub(crate) window: Duration,
    pub(crate) watermark: Option<Fence>,
    pub(crate) label: RuntimeLabel,
    pub(crate) keeps: bool,
}

impl PlaceRow {
    /// The place of an acquisition with this heartbeat, not heard yet.
    pub(crate) fn new(
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<Fence>,
        label: &RuntimeLabel,
        keeps: bool,
        heartbeat: Heartbeat,
    ) -> Self {
        Self {
            id,
            ttl,
            heartbeat: heartbeat.number,
            arrived: Instant::default(),
            heard: Instant::default(),
            window: heartbeat.window(ttl),
            watermark,
            label: label.clone(),
            keeps,
        }
    }

    /// Whether the waiter was heard within its claim window.
    pub(crate) fn is_live(&self, now: Instant) -> bool {
        now <= self.heard + self.window
    }
}

impl Queue {
    /// Forgets all places when the queue's time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.ends <= now {
            self.places.clear();
        }
    }

    /// When nothing of the queue is left.
    pub(crate) fn ends(&self) -> Instant {
        if self.places.is_empty() { Instant::default() } else { self.ends }
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

    /// The live ones of the first places.
    pub(crate) fn live(&self, now: Instant, first: usize) -> impl Iterator<Item = &PlaceRow> {
        self.places.iter().take(first).filter(move |place| place.is_live(now))
    }

    /// The first live place; dead ones before it are removed.
    pub(crate) fn head(&mut self, now: Instant) -> Option<&PlaceRow> {
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
            (place.heard, place.window) = (Instant::default(), Duration::ZERO);
            (place.heartbeat, place.watermark) = (0, None);
        }
    }

    /// Keeps the queue for as long as a place lasts.
    pub(crate) fn keep(&mut self, now: Instant, window: Duration) {
        let needed = now + window;
        if needed >= self.ends {
            self.ends = needed + QUEUE_SPARE;
        }
    }

    /// Refreshes the place of the acquisition, heard now, or queues it at the tail in place of an
    /// older one of its runtime. The greater heartbeat and watermark stay. Call
    /// [`keep`](Self::keep) afterwards.
    pub(crate) fn stand(&mut self, now: Instant, place: &PlaceRow) {
        let place = PlaceRow { arrived: now, heard: now, ..place.clone() };
        let id = place.id;
        if self.places.is_empty() {
            self.ends = now + place.window;
        }
        // A place that has lost its heartbeat is queued again, as in Redis.
        let is_over = |other: &PlaceRow| other.id != id || other.window.is_zero();
        self.remove(|other| other.id.runtime() == id.runtime() && is_over(other));
        match self.places.iter_mut().find(|other| other.id == id) {
            None => self.places.push_back(place),
            Some(stored) => {
                let heartbeat = place.heartbeat.max(stored.heartbeat);
                let watermark = place.watermark.max(stored.watermark);
                *stored = PlaceRow { heartbeat, watermark, arrived: stored.arrived, ..place };
            }
        }
    }
}
