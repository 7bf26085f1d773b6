use std::time::Duration;

use super::{super::row::PlaceRow, Step, step::Grantee};
use crate::{
    store::{Acquire, AcquireAnswer, Granted, Heartbeat, Place, Push, StoreError},
    types::{AcquisitionId, Fence, Mode},
};

impl Step<'_> {
    /// Tells a writer's runtime that another one waits, if it may keep the lock idle.
    pub(super) fn recall(&mut self) {
        let Some(lease) = self.lease().filter(|lease| lease.keeps()) else { return };
        let (id, fence) = (lease.id, lease.fence);
        self.send(id, Push::Wanted { name: self.name.clone(), id, fence });
    }

    fn keep(&mut self, asker: &PlaceRow) -> Place {
        let now = self.now;
        self.queue().keep(now, asker.window);
        self.place(asker.id)
    }

    pub(super) fn place(&mut self, id: AcquisitionId) -> Place {
        let remaining = self.lease_left().unwrap_or_default();
        Place { remaining, ahead: self.queue().ahead_of(id) }
    }

    /// Queues the asker for the free lock, and grants the lock to those whose turn it is; the asker has it for
    /// `lifetime`. Returns `None` if it is not among them: then, and without a token, the asker stays queued.
    pub(super) fn contest(
        &mut self,
        asker: &PlaceRow,
        lifetime: Duration,
        last_mode: Option<Mode>,
    ) -> Result<Option<Granted>, StoreError> {
        let (now, id) = (self.now, asker.id);
        self.queue().stand(now, asker);
        // With the heartbeat and the watermark that were known of it.
        let stored = self.queue().place(id).cloned();
        let shared = self.share_out(last_mode, stored.as_ref().map(|own| (own, lifetime)));
        let own = shared.as_ref().ok().and_then(|granted| own_grant_of(id, granted.as_ref()?));
        if own.is_none() {
            self.keep(asker);
        }
        shared.map(|_| own)
    }

    pub(crate) fn acquire(&mut self, command: &Acquire) -> Result<AcquireAnswer, StoreError> {
        let Acquire { id, mode, ttl, watermark, ref label, keeps, wait, .. } = *command;
        // A try looks at neither heartbeat nor window.
        let unused = Heartbeat { number: 0, claim_window: ttl.get() };
        let heartbeat = wait.unwrap_or(unused);
        let asker = PlaceRow::new((id, mode), ttl, watermark, label, keeps, heartbeat);
        if wait.is_some() { self.wait(&asker) } else { self.try_once(&asker) }
    }

    /// An acquire that waits, or a heartbeat: the two are the same.
    pub(crate) fn wait(&mut self, asker: &PlaceRow) -> Result<AcquireAnswer, StoreError> {
        let id = asker.id;
        if let Some(answer) = self.settled(asker) {
            return Ok(answer);
        }
        let had_place = self.queue().place(id).is_some();
        let lifetime = if had_place { asker.window } else { asker.ttl.get() };
        if self.lease().is_some() {
            return Ok(self.stand_behind(asker, lifetime));
        }
        let last_mode = self.row.last_mode(self.now);
        self.or_nothing(|step| match step.contest(asker, lifetime, last_mode)? {
            Some(granted) => Ok(AcquireAnswer::Granted(granted)),
            None => Ok(AcquireAnswer::Queued(step.place(id))),
        })
    }

    /// Joins the readers who hold the lock, or queues.
    pub(super) fn stand_behind(&mut self, asker: &PlaceRow, lifetime: Duration) -> AcquireAnswer {
        let now = self.now;
        self.queue().stand(now, asker);
        // With the watermark that was known of it.
        let own = self.queue().place(asker.id).cloned();
        if let Some(granted) = own.and_then(|own| self.join(&own, lifetime)) {
            return AcquireAnswer::Granted(granted);
        }
        let place = self.keep(asker);
        if place.ahead == 0 {
            self.recall();
        }
        self.recall_readers(asker.id);
        AcquireAnswer::Queued(place)
    }

    /// An acquire that does not wait: it passes no live waiter, not even of its own runtime.
    fn try_once(&mut self, asker: &PlaceRow) -> Result<AcquireAnswer, StoreError> {
        let (id, now) = (asker.id, self.now);
        if let Some(answer) = self.settled(asker) {
            return Ok(answer);
        }
        let own = self.queue().place(id).filter(|own| own.is_live(now));
        let lifetime = own.map_or_else(|| asker.ttl.get(), |own| own.window);
        let granted = if self.lease().is_some() {
            self.join(asker, lifetime)
        } else {
            let last_mode = self.row.last_mode(now);
            let shared =
                self.or_nothing(|step| step.share_out(last_mode, Some((asker, lifetime))))?;
            shared.and_then(|shared| own_grant_of(id, &shared))
        };
        let busy = |step: &mut Self| {
            let keeps = step.lease().is_some_and(|lease| lease.keeps());
            AcquireAnswer::Busy { remaining: step.lease_left().unwrap_or_default(), keeps }
        };
        Ok(granted.map_or_else(|| busy(self), AcquireAnswer::Granted))
    }

    /// Asks for the free lock; if it cannot be granted, the queue stays as it was.
    fn or_nothing<T>(
        &mut self,
        ask: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let before = self.queue().clone();
        let answer = ask(self);
        if answer.is_err() {
            *self.queue() = before;
        }
        answer
    }

    /// The answer to an acquisition that has the lease already, or can never get it.
    fn settled(&mut self, asker: &PlaceRow) -> Option<AcquireAnswer> {
        let (id, mode) = (asker.id, asker.mode);
        if let Some(granted) = self.own_grant((id, mode)) {
            self.queue()
                .remove(|place| place.seat() == asker.seat() && place.id.number() <= id.number());
            return Some(AcquireAnswer::Granted(granted));
        }
        (self.row.is_withdrawn(self.now, id) || self.is_outrun((id, mode)))
            .then_some(AcquireAnswer::Withdrawn)
    }
}

/// Those who share a lease.
impl Step<'_> {
    /// Joins the readers who hold the lock, unless a writer waits before the asker, or the asker has seen a greater
    /// fence. Readers of whom nothing is known are not joined: their lease runs out.
    pub(super) fn join(&mut self, asker: &PlaceRow, lifetime: Duration) -> Option<Granted> {
        let (now, id) = (self.now, asker.id);
        let fence = self.fence_of_readers()?;
        let is_barred = asker.bars(fence) || self.queue().is_barred(now, id, fence);
        if is_barred || self.row.readers.is_empty() {
            return None;
        }
        self.queue().remove(|place| place.seat() == asker.seat());
        Some(self.admit(id, lifetime, fence))
    }

    /// Adds a reader, whose place is gone.
    fn admit(&mut self, id: AcquisitionId, lifetime: Duration, fence: Fence) -> Granted {
        self.row.readers.insert(id, self.now);
        self.stretch(id, lifetime);
        let contended = self.queue().has_others(|_| false);
        Granted { first: fence, last: fence, remaining: lifetime, contended, regressed: false }
    }

    /// Lets a reader read for so long at least, and the lease of all as long as that.
    pub(super) fn stretch(&mut self, id: AcquisitionId, life: Duration) {
        let ends = self.now + life;
        let reader = self.row.readers.entry(id).or_default();
        *reader = ends.max(*reader);
        if let Some(lease) = self.lease() {
            lease.ends = lease.ends.max(ends);
        }
        self.outlive(life);
    }

    /// A reader is gone; returns whether others go on, whose lease ends with the last of them.
    pub(super) fn leaves_others(&mut self, id: AcquisitionId) -> bool {
        let now = self.now;
        self.row.readers.remove(&id);
        self.row.readers.retain(|_, ends| *ends > now);
        let last = self.row.readers.values().max().copied();
        if let (Some(lease), Some(last)) = (self.lease(), last) {
            lease.ends = last;
        }
        last.is_some()
    }

    /// Those who queued to read join: the writer who stood before them is gone.
    pub(super) fn admit_waiting(&mut self) {
        let now = self.now;
        let Some(fence) = self.fence_of_readers().filter(|_| !self.row.readers.is_empty()) else {
            return;
        };
        let waiting: Vec<_> = self.queue().unbarred(now, fence).cloned().collect();
        self.queue().remove(|place| waiting.iter().any(|other| other.id == place.id));
        for place in waiting {
            let granted = self.admit(place.id, place.window, fence);
            self.tell_granted(&place, granted);
        }
    }

    /// Tells all readers that somebody waits whom they let in, if that is the first one.
    pub(super) fn recall_readers(&mut self, asker: AcquisitionId) {
        let now = self.now;
        let Some(fence) = self.fence_of_readers() else { return };
        let bars = self.queue().place(asker).is_some_and(|place| place.bars(fence));
        if bars && !self.queue().is_barred(now, asker, fence) {
            let name = &self.name.clone();
            self.tell_readers(|id| Push::Wanted { name: name.clone(), id, fence });
        }
    }

    /// Tells the runtime of each reader.
    pub(super) fn tell_readers(&mut self, message: impl Fn(AcquisitionId) -> Push) {
        for id in self.readers() {
            self.send(id, message(id));
        }
    }

    /// The live readers, by their ids as stores keep them.
    pub(super) fn readers(&mut self) -> Vec<AcquisitionId> {
        let now = self.now;
        if self.fence_of_readers().is_none() {
            return Vec::new();
        }
        let live = self.row.readers.iter().filter(|(_, ends)| **ends > now).map(|(id, _)| *id);
        let mut readers: Vec<AcquisitionId> = live.collect();
        readers.sort_by_key(AcquisitionId::to_stored);
        readers
    }

    /// The fence of the readers who hold the lock.
    pub(super) fn fence_of_readers(&mut self) -> Option<Fence> {
        let lease = self.lease().filter(|lease| lease.mode == Mode::Read)?;
        Some(lease.fence)
    }
}

/// The grant of an acquisition, among those that were granted the lock together.
fn own_grant_of(
    id: AcquisitionId,
    (granted, grantees): &(Granted, Vec<Grantee>),
) -> Option<Granted> {
    let (_, remaining) = grantees.iter().find(|(place, _)| place.id == id)?;
    Some(Granted { remaining: *remaining, ..granted.clone() })
}
