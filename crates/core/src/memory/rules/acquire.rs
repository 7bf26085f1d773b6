use super::{super::queue::PlaceRow, Asker, Step, queue::Contest};
use crate::{
    store::{Acquire, AcquireAnswer, Heartbeat, StoreError},
    types::AcquisitionId,
};

impl Step<'_> {
    /// Grants a lock that nobody holds or waits for. Otherwise it queues the asker, or returns how
    /// long the present lease has left.
    pub(crate) fn acquire(&mut self, command: &Acquire<'_>) -> Result<AcquireAnswer, StoreError> {
        match command.wait {
            Some(heartbeat) => self.wait(&Asker::of_acquire(command, heartbeat)),
            None => self.try_once(command),
        }
    }

    /// An acquire that waits, or a heartbeat: the two are the same.
    pub(crate) fn wait(&mut self, asker: &Asker) -> Result<AcquireAnswer, StoreError> {
        let id = asker.place.id;
        if let Some(answer) = self.settled(id) {
            return Ok(answer);
        }
        if self.lease().is_some() {
            let place = self.enqueue(asker);
            if place.ahead == 0 {
                self.recall();
            }
            return Ok(AcquireAnswer::Queued(place));
        }
        let had_place = self.queue().place(id).is_some();
        let lifetime = if had_place { asker.place.window } else { asker.ttl.get() };
        self.or_nothing(|step| match step.contest(asker, lifetime)? {
            Contest::Won(granted) => Ok(AcquireAnswer::Granted(granted)),
            Contest::Queued(place) => Ok(AcquireAnswer::Queued(place)),
        })
    }

    /// An acquire that does not wait: it passes no live waiter, not even of its own runtime.
    fn try_once(&mut self, command: &Acquire<'_>) -> Result<AcquireAnswer, StoreError> {
        let (id, now) = (command.id, self.now);
        if let Some(answer) = self.settled(id) {
            return Ok(answer);
        }
        if let Some(lease) = self.lease() {
            let (ends, keeps) = (lease.ends, lease.keeps());
            return Ok(AcquireAnswer::Busy { remaining: self.left(ends), keeps });
        }
        let lifetime = match self.queue().head(now) {
            None => command.ttl.get(),
            Some(own) if own.id == id => own.window,
            Some(_) => {
                let granted = self.or_nothing(Self::grant_next)?;
                let (remaining, keeps) = granted.unwrap_or_default();
                return Ok(AcquireAnswer::Busy { remaining, keeps });
            }
        };
        let Acquire { ttl, watermark, label, keeps, .. } = *command;
        let heartbeat = Heartbeat { number: 0, claim_window: lifetime };
        let grantee = PlaceRow::new(id, ttl, watermark, label, keeps, heartbeat);
        Ok(AcquireAnswer::Granted(self.grant(grantee, lifetime)?))
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
        (self.is_withdrawn(id) || self.is_outrun(id)).then_some(AcquireAnswer::Withdrawn)
    }
}
