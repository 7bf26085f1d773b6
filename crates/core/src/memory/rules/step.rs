use std::time::Duration;

use super::super::row::{CounterRow, LeaseRow, PlaceRow, Queue, Readers, Row};
use crate::{
    clock::Instant,
    store::{FencePolicy, FenceSettings, Granted, Push, StoreError, whole_millis},
    types::{AcquisitionId, Fence, LockName, Mode, RuntimeId},
};

/// A watermark further ahead of the clock than this comes from a wrong clock.
const WATERMARK_LEAD: u64 = 24 * 60 * 60 * 1_000_000;

/// From here on a counter is a time in microseconds, since September 2001.
const TIMES: u64 = 1_000_000_000_000_000;

/// How many tokens a grant gets at most. A turn usually ends earlier, by its time or its waiters.
// ADR 0007
const LONGEST: u64 = 1024;

/// Who is granted a lock, and for how long.
pub(super) type Grantee = (PlaceRow, Duration);

/// One execution of a rule on the row of a name, at one moment.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) row: &'a mut Row,
    pub(crate) name: &'a LockName,
    /// The store's time, since the Unix epoch.
    pub(crate) now: Instant,
    pub(crate) settings: &'a FenceSettings,
    /// What the step has sent, in order.
    pub(crate) mail: Vec<(RuntimeId, Push)>,
}

impl Step<'_> {
    pub(super) fn send(&mut self, to: AcquisitionId, push: Push) {
        self.mail.push((to.runtime(), push));
    }

    pub(super) fn lease(&mut self) -> Option<&mut LeaseRow> {
        self.row.lease(self.now)
    }

    /// The waiters.
    pub(super) fn queue(&mut self) -> &mut Queue {
        self.row.queue(self.now)
    }

    /// How long until `end`, in whole milliseconds as in Redis.
    pub(super) fn left(&self, end: Instant) -> Duration {
        whole_millis(end.saturating_since(self.now))
    }

    /// How long the present lease has left, if there is one.
    pub(super) fn lease_left(&mut self) -> Option<Duration> {
        let ends = self.lease()?.ends;
        Some(self.left(ends))
    }

    /// The grant that an acquisition has, unless it is only kept closed.
    pub(super) fn own_grant(&mut self, (id, mode): (AcquisitionId, Mode)) -> Option<Granted> {
        let (first, last, ends) = self.held_by(id)?;
        let contended = self.queue().has_others(|seat| seat == (id.runtime(), mode));
        Some(Granted { first, last, remaining: self.left(ends), contended, regressed: false })
    }

    /// First and last token of the lease that an acquisition has, and until when it has it.
    fn held_by(&mut self, id: AcquisitionId) -> Option<(Fence, Fence, Instant)> {
        let reader = self.row.reader(self.now, id).copied();
        let lease = self.lease().filter(|lease| !lease.kept)?;
        let ends = match lease.mode {
            Mode::Write => (lease.id == id).then_some(lease.ends)?,
            Mode::Read => reader?,
        };
        Some((lease.fence, lease.last, ends))
    }

    /// Whether a command is late: its runtime has queued a newer acquisition in its mode.
    pub(super) fn is_outrun(&mut self, (id, mode): (AcquisitionId, Mode)) -> bool {
        let place = self.queue().of((id.runtime(), mode));
        place.is_some_and(|place| place.id.number() > id.number())
    }

    /// Grants the free lock to a writer or to readers, and takes them out of the queue.
    fn grant(&mut self, grantees: &[Grantee]) -> Result<Option<Granted>, StoreError> {
        let Some((opener, remaining)) = grantees.first() else { return Ok(None) };
        let is_grantee = |seat| grantees.iter().any(|(place, _)| place.seat() == seat);
        let contended = self.queue().has_others(is_grantee);
        let watermark = grantees.iter().filter_map(|(place, _)| place.watermark).max();
        let writes = opener.mode == Mode::Write;
        let Some((first, last, regressed)) = self.block(watermark, contended && writes) else {
            return Err(StoreError::exhausted().for_lock(self.name));
        };
        // Readers share one token.
        let first = if writes { first } else { last };
        let now = self.now;
        let until = |(place, lifetime): &Grantee| (place.id, now + *lifetime);
        let ends: Readers = grantees.iter().map(until).collect();
        let longest = ends.values().max().map_or(Duration::ZERO, |ends| self.left(*ends));
        self.count(last, longest);
        self.queue().remove(|place| is_grantee(place.seat()));
        self.row.lease = Some(LeaseRow {
            id: opener.id,
            mode: opener.mode,
            fence: first,
            last,
            holds: 1,
            hold_number: 0,
            label: opener.label.clone(),
            since: now,
            kept: false,
            keeps: opener.keeps && writes,
            ends: now + longest,
        });
        self.row.readers = if writes { Readers::new() } else { ends };
        Ok(Some(Granted { first, last, remaining: *remaining, contended, regressed }))
    }

    /// Grants the free lock to those whose turn it is, each for its claim window, and tells their runtimes; an asker
    /// among them is answered instead, and has the lock for its own time. Returns the grant of the first.
    pub(super) fn share_out(
        &mut self,
        last_mode: Option<Mode>,
        asker: Option<(&PlaceRow, Duration)>,
    ) -> Result<Option<(Granted, Vec<Grantee>)>, StoreError> {
        let now = self.now;
        self.queue().forget_dead(now);
        let mut next = self.queue().next(now, last_mode);
        if let Some((asker, _)) = asker
            && self.queue().admits(now, asker)
        {
            next.push(asker.clone());
        }
        let its_time = |place: PlaceRow| match asker {
            Some((asker, lifetime)) if asker.id == place.id => (asker.clone(), lifetime),
            _ => (place.clone(), place.window),
        };
        let all: Vec<Grantee> = next.into_iter().map(its_time).collect();
        let Some(granted) = self.grant(&all)? else { return Ok(None) };
        for (place, remaining) in &all {
            if asker.is_none_or(|(asker, _)| asker.id != place.id) {
                self.tell_granted(place, Granted { remaining: *remaining, ..granted.clone() });
            }
        }
        Ok(Some((granted, all)))
    }

    pub(super) fn tell_granted(&mut self, place: &PlaceRow, granted: Granted) {
        let (name, id, heartbeat) = (self.name.clone(), place.id, place.heartbeat);
        self.send(id, Push::Granted { name, id, granted, heartbeat });
    }

    /// Grants the free lock to those whose turn it is, if a token is left for them.
    pub(super) fn grant_next(&mut self, last_mode: Option<Mode>) {
        // Without a token the waiter keeps its place; its next heartbeat hears why.
        let _ = self.share_out(last_mode, None);
    }

    /// First and last of the tokens above all known ones, not beyond the clock, and whether the
    /// counter was behind the asker's watermark; `None` when no token is left.
    ///
    /// A plain counter gives a single token, unless others wait: then the turn may serve as many
    /// tasks as any other.
    fn block(&self, watermark: Option<Fence>, contended: bool) -> Option<(Fence, Fence, bool)> {
        let counted = self.row.counted(self.now);
        let seen = watermark.map_or(0, Fence::get);
        let seen = if seen > self.micros().saturating_add(WATERMARK_LEAD) { 0 } else { seen };
        let floor = counted.max(seen).saturating_add(1);
        // Without a counter it is unknown which of the tokens before this one are taken.
        let length = if counted == 0 { 1 } else { LONGEST };
        let (first, last) = if self.is_plain(floor) {
            (floor, if contended { floor + length - 1 } else { floor })
        } else {
            let last = self.raised(floor);
            (floor.max(last.saturating_sub(length - 1)), last)
        };
        let (first, last) = (Fence::try_from(first).ok()?, Fence::try_from(last).ok()?);
        Some((first, last, seen > counted))
    }

    pub(super) fn token_after(&self, last: u64) -> Option<Fence> {
        Fence::try_from(self.raised(last.saturating_add(1))).ok()
    }

    /// Sets the counter, which outlives a lease of this length.
    pub(super) fn count(&mut self, last: Fence, life: Duration) {
        let ends = self.row.counter(self.now).and_then(|counter| counter.ends);
        let ends = ends.filter(|_| self.settings.policy == FencePolicy::TimeFloor);
        self.row.counter = Some(CounterRow { last: last.get(), ends });
        self.outlive(life);
    }

    /// Lets the counter live for the retention and longer than a lease, and an eighth more, as in
    /// Redis: most grants need not refresh it so.
    pub(super) fn outlive(&mut self, life: Duration) {
        if self.settings.policy == FencePolicy::Counter {
            return;
        }
        let (now, least) = (self.now, self.settings.counter_lifetime(self.name).max(life));
        if let Some(mut counter) = self.row.counter(now) {
            if counter.ends.is_none_or(|ends| ends < now + least) {
                counter.ends = Some(now + least + least / 8);
            }
            self.row.counter = Some(counter);
        }
    }

    /// A token, raised to the clock unless it is counted plainly.
    fn raised(&self, token: u64) -> u64 {
        if self.is_plain(token) { token } else { token.max(self.micros()) }
    }

    /// The time in microseconds, as fence tokens count it.
    fn micros(&self) -> u64 {
        u64::try_from(self.now.since_origin().as_micros()).unwrap_or(u64::MAX)
    }

    /// Whether tokens from this one on are counted plainly. Where another process has raised the
    /// counter to the time, this one goes on by the clock, too: or its blocks would run ahead.
    fn is_plain(&self, token: u64) -> bool {
        self.settings.policy == FencePolicy::Counter && token < TIMES
    }
}
