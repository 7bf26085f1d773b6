use std::time::Duration;

use super::{super::row::PlaceRow, Step};
use crate::{
    store::{Acquire, AcquireAnswer, Granted, Heartbeat, Place, Push, StoreError},
    types::AcquisitionId,
};

impl Step<'_> {
    /// Tells the holder's runtime that another one waits, if it may keep the lock idle.
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

    /// Queues the asker for the free lock, and grants the lock to the first live place, for
    /// `lifetime` if that is the asker's. Returns `None` if it is not: then, and without a token, the
    /// asker stays queued.
    pub(super) fn contest(
        &mut self,
        asker: &PlaceRow,
        lifetime: Duration,
    ) -> Result<Option<Granted>, StoreError> {
        let (now, id) = (self.now, asker.id);
        self.queue().stand(now, asker);
        if self.queue().head(now).is_some_and(|head| head.id != id) {
            let granted = self.grant_next();
            self.keep(asker);
            return granted.map(|_| None);
        }
        // An earlier watermark of this place counts, too.
        let watermark = self.queue().place(id).and_then(|place| place.watermark);
        let granted = self.grant(PlaceRow { watermark, ..asker.clone() }, lifetime);
        if granted.is_err() {
            self.keep(asker);
        }
        granted.map(Some)
    }

    pub(crate) fn acquire(&mut self, command: &Acquire) -> Result<AcquireAnswer, StoreError> {
        let Acquire { id, ttl, watermark, ref label, keeps, wait, .. } = *command;
        // A try looks at neither heartbeat nor window.
        let unused = Heartbeat { number: 0, claim_window: ttl.get() };
        let heartbeat = wait.unwrap_or(unused);
        let asker = PlaceRow::new(id, ttl, watermark, label, keeps, heartbeat);
        if wait.is_some() { self.wait(&asker) } else { self.try_once(asker) }
    }

    /// An acquire that waits, or a heartbeat: the two are the same.
    pub(crate) fn wait(&mut self, asker: &PlaceRow) -> Result<AcquireAnswer, StoreError> {
        let id = asker.id;
        if let Some(answer) = self.settled(id) {
            return Ok(answer);
        }
        if self.lease().is_some() {
            let now = self.now;
            self.queue().stand(now, asker);
            let place = self.keep(asker);
            if place.ahead == 0 {
                self.recall();
            }
            return Ok(AcquireAnswer::Queued(place));
        }
        let had_place = self.queue().place(id).is_some();
        let lifetime = if had_place { asker.window } else { asker.ttl.get() };
        self.or_nothing(|step| match step.contest(asker, lifetime)? {
            Some(granted) => Ok(AcquireAnswer::Granted(granted)),
            None => Ok(AcquireAnswer::Queued(step.place(id))),
        })
    }

    /// An acquire that does not wait: it passes no live waiter, not even of its own runtime.
    fn try_once(&mut self, asker: PlaceRow) -> Result<AcquireAnswer, StoreError> {
        let (id, now) = (asker.id, self.now);
        if let Some(answer) = self.settled(id) {
            return Ok(answer);
        }
        if let Some(lease) = self.lease() {
            let (ends, keeps) = (lease.ends, lease.keeps());
            return Ok(AcquireAnswer::Busy { remaining: self.left(ends), keeps });
        }
        let lifetime = match self.queue().head(now) {
            None => asker.ttl.get(),
            Some(own) if own.id == id => own.window,
            Some(_) => {
                let granted = self.or_nothing(Self::grant_next)?;
                let (remaining, keeps) = granted.unwrap_or_default();
                return Ok(AcquireAnswer::Busy { remaining, keeps });
            }
        };
        Ok(AcquireAnswer::Granted(self.grant(asker, lifetime)?))
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
    fn settled(&mut self, id: AcquisitionId) -> Option<AcquireAnswer> {
        if let Some(granted) = self.own_grant(id) {
            self.queue().remove(|place| {
                place.id.runtime() == id.runtime() && place.id.number() <= id.number()
            });
            return Some(AcquireAnswer::Granted(granted));
        }
        (self.row.is_withdrawn(self.now, id) || self.is_outrun(id))
            .then_some(AcquireAnswer::Withdrawn)
    }
}
