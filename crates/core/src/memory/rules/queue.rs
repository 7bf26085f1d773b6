use std::time::Duration;

use super::{super::queue::PlaceRow, Step, grant::Grantee};
use crate::{
    store::{Acquire, Granted, Heartbeat, Next, Place, Push, StoreError, Waiter},
    types::{AcquisitionId, FenceToken, RuntimeLabel, Ttl},
};

/// An acquisition that asks for a lock and may wait.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(super) id: AcquisitionId,
    pub(super) ttl: Ttl,
    watermark: Option<FenceToken>,
    label: RuntimeLabel,
    keeps: bool,
    heartbeat: Heartbeat,
}

/// The result of asking for a free lock.
#[derive(Debug)]
pub(super) enum Contest {
    /// The asker has it.
    Won(Granted),
    /// A waiter before the asker has it; the asker stands in the queue.
    Queued(Place),
}

impl Asker {
    /// The asker of an acquire that waits.
    pub(super) fn of_acquire(command: &Acquire<'_>, heartbeat: Heartbeat) -> Self {
        let Acquire { id, ttl, watermark, keeps, .. } = *command;
        Self { id, ttl, watermark, label: command.label.clone(), keeps, heartbeat }
    }

    pub(crate) fn of_waiter(waiter: &Waiter, label: &RuntimeLabel) -> Self {
        let Waiter { id, ttl, watermark, keeps, heartbeat, .. } = *waiter;
        Self { id, ttl, watermark, label: label.clone(), keeps, heartbeat }
    }

    /// The acquisition with which a runtime queues anew.
    pub(super) fn of_next(next: &Next<'_>) -> Self {
        let Next { id, ttl, watermark, keeps, heartbeat, .. } = *next;
        Self { id, ttl, watermark, label: next.label.clone(), keeps, heartbeat }
    }

    /// How long a grant out of the queue lives, and how long a place lives without a heartbeat.
    pub(super) fn window(&self) -> Duration {
        self.heartbeat.window(self.ttl)
    }
}

impl Step<'_> {
    /// Queues the asker once, as heard now, and returns its place.
    pub(super) fn enqueue(&mut self, asker: &Asker) -> Place {
        self.stand(asker);
        self.keep(asker)
    }

    /// Tells the holder's runtime that another one waits, if it may keep the lock idle.
    pub(super) fn recall(&mut self) {
        let Some(lease) = self.lease().filter(|lease| lease.keeps()) else { return };
        let (id, fence) = (lease.id, lease.fence);
        self.send(id, Push::Wanted { name: self.name.clone(), id, fence });
    }

    fn stand(&mut self, asker: &Asker) {
        let now = self.now;
        let place = PlaceRow {
            id: asker.id,
            heartbeat: asker.heartbeat.number,
            heard: now,
            window: asker.window(),
            watermark: asker.watermark,
            label: asker.label.clone(),
            keeps: asker.keeps,
        };
        self.queue().stand(now, place);
    }

    fn keep(&mut self, asker: &Asker) -> Place {
        let now = self.now;
        self.queue().keep(now, asker.window());
        self.place(asker.id)
    }

    pub(super) fn place(&mut self, id: AcquisitionId) -> Place {
        let remaining = self.lease_left().unwrap_or_default();
        Place { remaining, ahead: self.queue().ahead_of(id) }
    }

    /// Queues the asker for the free lock, and grants the lock to the first live place, for
    /// `lifetime` if that is the asker's. Without a token the asker stays queued.
    pub(super) fn contest(
        &mut self,
        asker: &Asker,
        lifetime: Duration,
    ) -> Result<Contest, StoreError> {
        let now = self.now;
        self.stand(asker);
        if self.queue().head(now).is_some_and(|head| head.id != asker.id) {
            let granted = self.grant_next();
            let place = self.keep(asker);
            return granted.map(|_| Contest::Queued(place));
        }
        // An earlier watermark of this place counts, too.
        let watermark = self.queue().place(asker.id).and_then(|place| place.watermark);
        let (id, label, keeps) = (asker.id, asker.label.clone(), asker.keeps);
        let winner = Grantee { id, watermark, label, keeps };
        let granted = self.grant(winner, lifetime);
        if granted.is_err() {
            self.keep(asker);
        }
        granted.map(Contest::Won)
    }
}
