use std::{collections::BTreeSet, time::Duration};

use super::queue::Queue;
use crate::{
    seam::Part,
    types::{AcquisitionId, FenceToken, LockName, NameMap, RuntimeLabel},
};

/// The state of one name; parts that have expired count as absent.
#[derive(Debug, Default)]
pub(crate) struct Row {
    lease: Option<LeaseRow>,
    counter: Option<CounterRow>,
    queue: Queue,
    withdrawn: Vec<(AcquisitionId, ServerTime)>,
}

/// A lease, as the text of the same name in Redis.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRow {
    pub(crate) id: AcquisitionId,
    pub(crate) fence: FenceToken,
    pub(crate) last: FenceToken,
    pub(crate) holds: u32,
    pub(crate) hold_number: u64,
    pub(crate) label: RuntimeLabel,
    pub(crate) since: ServerTime,
    pub(crate) kept: bool,
    pub(crate) keeps: bool,
    pub(crate) ends: ServerTime,
}

impl LeaseRow {
    /// Whether a command that names this acquisition and fence is about the lease.
    pub(crate) fn is(&self, id: AcquisitionId, fence: FenceToken) -> bool {
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
    pub(crate) ends: Option<ServerTime>,
}

impl Row {
    pub(crate) fn lease(&mut self, now: ServerTime) -> Option<&mut LeaseRow> {
        if self.lease.as_ref().is_some_and(|lease| lease.ends <= now) {
            self.lease = None;
        }
        self.lease.as_mut()
    }

    pub(crate) fn set_lease(&mut self, lease: Option<LeaseRow>) {
        self.lease = lease;
    }

    pub(crate) fn queue(&mut self, now: ServerTime) -> &mut Queue {
        self.queue.expire(now);
        &mut self.queue
    }

    /// The last token granted, or 0 when the counter is not known.
    pub(crate) fn counted(&self, now: ServerTime) -> u64 {
        self.counter(now).map_or(0, |counter| counter.last)
    }

    pub(crate) fn counter(&self, now: ServerTime) -> Option<CounterRow> {
        self.counter.filter(|counter| counter.ends.is_none_or(|ends| ends > now))
    }

    pub(crate) fn set_counter(&mut self, counter: Option<CounterRow>) {
        self.counter = counter;
    }

    pub(crate) fn is_withdrawn(&mut self, now: ServerTime, id: AcquisitionId) -> bool {
        self.withdrawn.retain(|(_, ends)| *ends > now);
        self.withdrawn.iter().any(|(withdrawn, _)| *withdrawn == id)
    }

    pub(crate) fn mark_withdrawn(&mut self, now: ServerTime, id: AcquisitionId, ends: ServerTime) {
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
    pub(crate) fn ends(&self) -> Option<ServerTime> {
        let counter = match self.counter {
            Some(CounterRow { ends: None, .. }) => return None,
            Some(CounterRow { ends: Some(ends), .. }) => ends,
            None => ServerTime::default(),
        };
        let lease = self.lease.as_ref().map(|lease| lease.ends);
        let marks = self.withdrawn.iter().map(|(_, ends)| *ends);
        Some(marks.chain(lease).chain([self.queue.ends()]).fold(counter, Ord::max))
    }
}

/// A moment of the embedded store's clock, in microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct ServerTime(u64);

impl ServerTime {
    /// The moment that lies `since_epoch` after the Unix epoch.
    pub(crate) fn at(since_epoch: Duration) -> Self {
        Self(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }

    /// Microseconds since the Unix epoch, as fence tokens count them.
    pub(crate) fn micros(self) -> u64 {
        self.0
    }

    /// The moment `duration` later.
    pub(crate) fn after(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    pub(crate) fn until(self, later: Self) -> Duration {
        Duration::from_micros(later.0.saturating_sub(self.0))
    }
}

/// The rows of all names; a row goes when nothing of it is left.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    rows: NameMap<Row>,
    ends: BTreeSet<(ServerTime, LockName)>,
}

impl Keyspace {
    /// Applies a rule to the row of a name, and forgets rows whose time is over.
    pub(crate) fn with<T>(
        &mut self,
        now: ServerTime,
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

    /// How many names have a row at `now`.
    pub(crate) fn len(&mut self, now: ServerTime) -> usize {
        self.forget_ended(now);
        self.rows.len()
    }

    /// Forgets everything, as `FLUSHALL` would.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
    }

    fn forget_ended(&mut self, now: ServerTime) {
        while let Some((ends, name)) = self.ends.first().cloned() {
            if ends > now {
                return;
            }
            self.ends.pop_first();
            if self.rows.get(&name).is_some_and(|row| row.ends() == Some(ends)) {
                self.rows.remove(&name);
            }
        }
    }
}
