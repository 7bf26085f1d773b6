use std::time::Duration;

use super::{
    super::row::{LeaseRow, PlaceRow},
    Step,
};
use crate::{
    durations::WITHDRAWAL_MARK,
    lease::HoldUpdate,
    store::{
        AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection, LeaseRecord,
        Next, Push, Release, ReleaseAnswer, RenewAnswer, Renewal, WaiterRecord, Withdraw,
        WithdrawAnswer, whole_millis,
    },
    types::{AcquisitionId, Fence, Mode, Ttl},
};

/// How many waiters a look shows at most, and how many places it looks at.
const SHOWN: usize = 128;
const LOOKED_AT: usize = 1024;

impl Step<'_> {
    /// Sets the absolute number of holds and extends; never grants.
    pub(crate) fn hold(&mut self, command: &Hold) -> HoldAnswer {
        let Hold { id, fence, ttl, update, .. } = *command;
        match self.extend(id, fence, ttl, Some(update)) {
            Some(remaining) => HoldAnswer::Held { remaining },
            None if self.is_lost(fence) => HoldAnswer::DataLost,
            None => HoldAnswer::Gone,
        }
    }

    /// Extends a lease; never re-creates one.
    pub(crate) fn renew(&mut self, renewal: &Renewal) -> RenewAnswer {
        let Renewal { id, fence, ttl, .. } = *renewal;
        match self.extend(id, fence, ttl, None) {
            Some(remaining) => RenewAnswer::Renewed { remaining },
            None if self.is_lost(fence) => RenewAnswer::DataLost,
            None => RenewAnswer::Gone,
        }
    }

    /// Whether the data of a lease was lost: the lock has counted no further than before this first
    /// token.
    fn is_lost(&self, first: Fence) -> bool {
        self.row.counted(self.now) < first.get()
    }

    /// The answer to the release of a lease that is not there.
    fn gone(&self, first: Fence) -> ReleaseAnswer {
        if self.is_lost(first) { ReleaseAnswer::DataLost } else { ReleaseAnswer::Gone }
    }

    /// Extends a lease that is not only kept closed, unless a later change of its holds was seen;
    /// returns how long it has left.
    fn extend(
        &mut self,
        id: AcquisitionId,
        fence: Fence,
        ttl: Ttl,
        update: Option<HoldUpdate>,
    ) -> Option<Duration> {
        let now = self.now;
        if self.fence_of_readers() == Some(fence) {
            let left = self.row.reader(now, id).map(|ends| ends.saturating_since(now))?;
            let life = whole_millis(left.max(ttl.get()));
            self.stretch(id, life);
            return Some(life);
        }
        let lease = self.lease().filter(|lease| lease.is(id, fence) && !lease.kept)?;
        if let Some(HoldUpdate { count, number }) = update {
            if number <= lease.hold_number {
                return self.lease_left();
            }
            (lease.holds, lease.hold_number) = (count.get(), number);
        }
        lease.ends = lease.ends.max(now + ttl.get());
        let left = self.lease_left()?;
        self.outlive(left);
        Some(left)
    }

    /// Returns who holds the lock, and who waits for it.
    pub(crate) fn inspect(&mut self) -> Inspection {
        let now = self.now;
        let last_fence = Fence::try_from(self.row.counted(now)).ok();
        let waiters = self.waiters();
        let mut readers = self.readers();
        readers.truncate(SHOWN);
        let Some(lease) = self.row.lease(now) else { return Inspection::Free { last_fence } };
        Inspection::Held(LeaseRecord {
            id: lease.id,
            mode: lease.mode,
            readers,
            fence: lease.fence,
            holds: lease.holds,
            remaining: whole_millis(lease.ends.saturating_since(now)),
            label: lease.label.to_string(),
            held_for: now.saturating_since(lease.since),
            kept: lease.kept,
            idle: false,
            keeps: lease.keeps(),
            waiters,
        })
    }

    /// The first live waiters, in order.
    fn waiters(&mut self) -> Vec<WaiterRecord> {
        let now = self.now;
        let record = |place: &PlaceRow| WaiterRecord {
            id: place.id,
            mode: place.mode,
            label: place.label.to_string(),
            waiting_for: now.saturating_since(place.arrived),
            silent_for: now.saturating_since(place.heard),
        };
        self.queue().live(now, LOOKED_AT).take(SHOWN).map(record).collect()
    }

    /// Ends a lease and grants the lock to the next waiter, or keeps it closed for a given time.
    pub(crate) fn release(&mut self, command: &Release) -> ReleaseAnswer {
        let now = self.now;
        // Every field by its name: a new one has a meaning here, too.
        let Release { name: _, id, fence, keep, next } = command;
        let next = next.as_ref().filter(|_| keep.is_none());
        if self.fence_of_readers() == Some(*fence) && self.row.readers.contains_key(id) {
            return self.leave(*id, next);
        }
        let is_its = |lease: &&mut LeaseRow| lease.is(*id, *fence) && lease.mode == Mode::Write;
        let Some(lease) = self.lease().filter(is_its) else {
            return self.report(next, *fence);
        };
        if lease.kept {
            let ends = lease.ends;
            return ReleaseAnswer::Kept { remaining: self.left(ends) };
        }
        if let Some(keep) = command.keep_in_range() {
            lease.kept = true;
            lease.holds = 0;
            lease.ends = now + keep;
            self.outlive(keep);
            return ReleaseAnswer::Kept { remaining: keep };
        }
        let next = next.and_then(|next| self.follower(next));
        self.end_and_follow(next.as_ref())
    }

    /// A reader leaves. The next acquisition queues, or joins those who go on; if nobody does, the lease ends.
    fn leave(&mut self, id: AcquisitionId, next: Option<&Next>) -> ReleaseAnswer {
        let next = next.and_then(|next| self.follower(next));
        let goes_on = self.leaves_others(id);
        match next {
            next if !goes_on => self.end_and_follow(next.as_ref()),
            None => ReleaseAnswer::Released,
            Some(next) => match self.stand_behind(&next, next.window) {
                AcquireAnswer::Granted(granted) => ReleaseAnswer::NextGranted(granted),
                _ => ReleaseAnswer::NextQueued(self.place(next.id)),
            },
        }
    }

    /// The place of the next acquisition, unless it was withdrawn, or its runtime has queued a newer one.
    fn follower(&mut self, next: &Next) -> Option<PlaceRow> {
        let Next { id, mode, ttl, watermark, ref label, keeps, heartbeat } = *next;
        let counts = !self.row.is_withdrawn(self.now, id) && !self.is_outrun((id, mode));
        counts.then(|| PlaceRow::new((id, mode), ttl, watermark, label, keeps, heartbeat))
    }

    /// Ends the lease and queues the next acquisition, if there is one, or grants it the lock when it is its turn.
    fn end_and_follow(&mut self, next: Option<&PlaceRow>) -> ReleaseAnswer {
        let last_mode = self.row.lease.take().map(|lease| lease.mode);
        let Some(next) = next else {
            self.grant_next(last_mode);
            return ReleaseAnswer::Released;
        };
        match self.contest(next, next.window, last_mode) {
            Ok(Some(granted)) => ReleaseAnswer::NextGranted(granted),
            // Without a token, too: the lease has ended, and the next heartbeat hears why.
            Ok(None) | Err(_) => ReleaseAnswer::NextQueued(self.place(next.id)),
        }
    }

    /// Reports what the next acquisition has when the lease is gone; changes nothing.
    fn report(&mut self, next: Option<&Next>, first: Fence) -> ReleaseAnswer {
        let Some(next) = next else { return self.gone(first) };
        match self.own_grant((next.id, next.mode)) {
            Some(granted) => ReleaseAnswer::NextGranted(granted),
            None if self.queue().place(next.id).is_none() => self.gone(first),
            None => ReleaseAnswer::NextQueued(self.place(next.id)),
        }
    }

    /// Takes an acquisition back: its place, or its grant, which the next waiter gets.
    pub(crate) fn withdraw(&mut self, command: &Withdraw) -> WithdrawAnswer {
        let id = command.id;
        self.queue().remove(|place| place.id == id);
        let reads = self.row.reader(self.now, id).is_some();
        let is_its = |lease: &LeaseRow| lease.id == id && !lease.kept && lease.mode == Mode::Write;
        let ended_grant = reads || self.lease().is_some_and(|lease| is_its(lease));
        if ended_grant && !(reads && self.leaves_others(id)) {
            self.end_and_follow(None);
        }
        self.admit_waiting();
        self.row.mark_withdrawn(self.now, id, self.now + WITHDRAWAL_MARK);
        WithdrawAnswer { ended_grant }
    }

    /// Ends the lease that was inspected, moves the fence on, tells its runtime, and grants the
    /// lock.
    pub(crate) fn force_release(&mut self, command: &ForceRelease) -> ForceReleaseAnswer {
        let ForceRelease { id, fence, .. } = *command;
        let Some(lease) = self.lease().filter(|lease| lease.is(id, fence)) else {
            return ForceReleaseAnswer::Changed;
        };
        let (ended, lease_mode) = (lease.last.get(), lease.mode);
        let above = self.token_after(self.row.counted(self.now).max(ended));
        if let Some(above) = above {
            self.count(above, Duration::ZERO);
        }
        let name = self.name.clone();
        if lease_mode == Mode::Read {
            self.tell_readers(|id| Push::ForceReleased { name: name.clone(), id, fence });
        } else {
            self.send(id, Push::ForceReleased { name, id, fence });
        }
        self.end_and_follow(None);
        ForceReleaseAnswer::Ended { fence: above }
    }
}
