use std::time::Duration;

use super::{super::row::PlaceRow, Step};
use crate::{
    store::{Granted, Push},
    types::{AcquisitionId, Fence, Mode},
};

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
