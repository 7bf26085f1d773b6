use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use crate::{
    clock::Instant,
    durations::QUEUE_SPARE,
    store::Heartbeat,
    types::{AcquisitionId, Fence, LockName, Mode, NameMap, RuntimeId, RuntimeLabel, Ttl},
};

/// How many places of a queue a script looks at.
const WALKED: usize = 256;

/// The state of one name; parts that have expired count as absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// The last lease; it may have expired.
    pub(super) lease: Option<LeaseRow>,
    pub(super) readers: Readers,
    pub(super) counter: Option<CounterRow>,
    queue: Queue,
    withdrawn: Vec<(AcquisitionId, Instant)>,
}

/// Those who share the lease of readers, and until when each of them has it. It is empty only if it was lost.
pub(crate) type Readers = BTreeMap<AcquisitionId, Instant>;

/// A lease, as the text of the same name in Redis: that of a writer, or one that readers share. That lives as
/// long as one of them.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRow {
    /// Of readers: who opened it.
    pub(crate) id: AcquisitionId,
    pub(crate) mode: Mode,
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
        self.lease.as_mut().filter(|lease| lease.ends > now)
    }

    /// The mode of the last lease, if that is still known.
    pub(crate) fn last_mode(&self, now: Instant) -> Option<Mode> {
        let is_known = self.counter(now).is_some();
        self.lease.as_ref().filter(|_| is_known).map(|lease| lease.mode)
    }

    /// Until when an acquisition shares the lease of readers.
    pub(crate) fn reader(&mut self, now: Instant, id: AcquisitionId) -> Option<&mut Instant> {
        self.lease(now).filter(|lease| lease.mode == Mode::Read)?;
        self.readers.get_mut(&id).filter(|ends| **ends > now)
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
            Part::Readers => self.readers.clear(),
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
    /// Who shares the lease of readers.
    Readers,
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

/// The runtimes that wait for a name, in the order of their arrival; one place for each and mode.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    places: VecDeque<PlaceRow>,
    ends: Instant,
}

/// A place in the queue, or an acquisition that asks for one.
#[derive(Debug, Clone)]
pub(crate) struct PlaceRow {
    pub(crate) id: AcquisitionId,
    pub(crate) mode: Mode,
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
        (id, mode): (AcquisitionId, Mode),
        ttl: Ttl,
        watermark: Option<Fence>,
        label: &RuntimeLabel,
        keeps: bool,
        heartbeat: Heartbeat,
    ) -> Self {
        Self {
            id,
            mode,
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

    /// Who has the place: a runtime has one for each mode.
    pub(crate) fn seat(&self) -> (RuntimeId, Mode) {
        (self.id.runtime(), self.mode)
    }

    /// Whether nobody joins readers with this fence from behind it: a writer, or a reader that has seen a greater
    /// fence.
    pub(crate) fn bars(&self, fence: Fence) -> bool {
        self.mode == Mode::Write || self.watermark > Some(fence)
    }

    fn is_known(&self) -> bool {
        !self.window.is_zero()
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

    /// Whether somebody else than these has a place, live or dead.
    pub(crate) fn has_others(&self, than: impl Fn((RuntimeId, Mode)) -> bool) -> bool {
        self.places.iter().any(|place| !than(place.seat()))
    }

    /// The place of a runtime in a mode, unless only its rank is known.
    pub(crate) fn of(&self, seat: (RuntimeId, Mode)) -> Option<&PlaceRow> {
        self.places.iter().find(|place| place.seat() == seat).filter(|place| place.is_known())
    }

    pub(crate) fn place(&self, id: AcquisitionId) -> Option<&PlaceRow> {
        self.places.iter().find(|place| place.id == id).filter(|place| place.is_known())
    }

    /// How many places stand before that of an acquisition, live or dead.
    pub(crate) fn ahead_of(&self, id: AcquisitionId) -> u64 {
        self.places.iter().take_while(|place| place.id != id).map(|_| 1).sum()
    }

    /// The live ones of the first places.
    pub(crate) fn live(&self, now: Instant, first: usize) -> impl Iterator<Item = &PlaceRow> {
        self.places.iter().take(first).filter(move |place| place.is_live(now))
    }

    /// Removes the dead places before the first live one.
    pub(crate) fn forget_dead(&mut self, now: Instant) {
        while self.places.front().is_some_and(|place| !place.is_live(now)) {
            self.places.pop_front();
        }
    }

    /// Who is granted the free lock: all live readers, or the first live writer. After a writer these are the
    /// readers, after readers the writer, if there is one; otherwise the first in line decides.
    pub(crate) fn next(&self, now: Instant, last_mode: Option<Mode>) -> Vec<PlaceRow> {
        let (readers, mut writers): (Vec<_>, Vec<_>) =
            self.live(now, WALKED).cloned().partition(|place| place.mode == Mode::Read);
        let reads_first = match last_mode {
            Some(last) => last == Mode::Write,
            None => self.live(now, WALKED).next().is_some_and(|head| head.mode == Mode::Read),
        };
        writers.truncate(1);
        let [first, second] = if reads_first { [readers, writers] } else { [writers, readers] };
        if first.is_empty() { second } else { first }
    }

    /// Whether one that only tries passes nobody who waits for the free lock. Readers pass readers.
    pub(crate) fn admits(&self, now: Instant, asker: &PlaceRow) -> bool {
        let both_read = |place: &PlaceRow| (place.mode, asker.mode) == (Mode::Read, Mode::Read);
        let stands = |place: &PlaceRow| place.id == asker.id;
        self.live(now, WALKED).all(|place| both_read(place) && !stands(place))
    }

    /// The live places before the first one that keeps others from joining readers with this fence.
    pub(crate) fn unbarred(&self, now: Instant, fence: Fence) -> impl Iterator<Item = &PlaceRow> {
        self.live(now, WALKED).take_while(move |place| !place.bars(fence))
    }

    /// Whether a live place before that of an acquisition keeps it from joining readers with this fence.
    pub(crate) fn is_barred(&self, now: Instant, id: AcquisitionId, fence: Fence) -> bool {
        self.live(now, WALKED).take_while(|place| place.id != id).any(|place| place.bars(fence))
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
        let is_over = |other: &PlaceRow| other.id != id || !other.is_known();
        self.remove(|other| other.seat() == place.seat() && is_over(other));
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
