use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold::{AcquireError, FenceToken, Guard, LockRuntime, ReentrantLock};

use crate::{
    article::Article,
    failure::Failure,
    orders::OrderFile,
    pause::pause,
    progress::Progress,
    shelf::{Booking, Shelf},
    storage::Storage,
    tally::Tally,
};

/// Where the workers of this copy find their work, and do it.
pub(crate) struct Desk<S> {
    pub(crate) locks: LockRuntime,
    pub(crate) file: Arc<OrderFile>,
    pub(crate) storage: S,
    progress: Progress,
    /// The next line of the order file that a worker turns to.
    line: AtomicUsize,
    /// How many orders of each article are known to be done; the storage may be ahead.
    done: Vec<AtomicUsize>,
    taken_over: AtomicU64,
    other_fence: AtomicU64,
}

/// What came of turning to an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    /// Its next order is done.
    Booked,
    /// All of its orders were done.
    Finished,
    /// The lease was lost on the way; whoever holds the lock now goes on from there.
    TakenOver,
}

impl<S: Storage> Desk<S> {
    pub(crate) fn new(locks: LockRuntime, file: Arc<OrderFile>, storage: S) -> Self {
        let progress = Progress::of(file.line.len());
        let done = file.articles.iter().map(|_| AtomicUsize::new(0)).collect();
        let (line, taken_over, other_fence) = Default::default();
        Self { locks, file, storage, progress, line, done, taken_over, other_fence }
    }

    /// Works until the whole file is done, by this copy or by others.
    ///
    /// Every line makes a worker do the *next* order of its article, whichever that is: so nothing
    /// is claimed, and a worker that dies leaves nothing undone behind.
    pub(crate) async fn work(&self) -> Result<(), Failure> {
        while let Some(&article) = self.file.line.get(self.line.fetch_add(1, Ordering::Relaxed)) {
            self.turn_to(article).await?;
        }
        Ok(())
    }

    /// Does what the line has left: orders that were taken over by a copy that has crashed since.
    pub(crate) async fn finish(&self) -> Result<(), Failure> {
        for article in 0..self.file.articles.len() {
            while self.turn_to(article).await? != Visit::Finished {}
        }
        Ok(())
    }

    /// Adds what went otherwise than planned.
    pub(crate) fn count(&self, tally: &mut Tally) {
        tally.taken_over += self.taken_over.load(Ordering::Relaxed);
        tally.other_fence += self.other_fence.load(Ordering::Relaxed);
    }

    pub(crate) fn lock(&self, article: &Article) -> Result<ReentrantLock, Failure> {
        Ok(self.locks.lock(article.lock_name())?.class(article.class())?)
    }

    async fn turn_to(&self, index: usize) -> Result<Visit, Failure> {
        let article = &self.file.articles[index];
        if self.done[index].load(Ordering::Relaxed) == article.orders.len() {
            return Ok(Visit::Finished);
        }
        let owner = self.locks.owner();
        let guard = self.lock(article)?.acquire().owner(&owner).await?;
        let visit = owner.scope(self.serve(index, &guard)).await;
        // Lost or unconfirmed: the gate has judged the booking, and the lock frees by itself.
        drop(guard.release().await);
        if matches!(visit, Ok(Visit::TakenOver)) {
            self.taken_over.fetch_add(1, Ordering::Relaxed);
        }
        visit
    }

    /// Does the next order of an article, under its lock.
    async fn serve(&self, index: usize, guard: &Guard) -> Result<Visit, Failure> {
        let article = &self.file.articles[index];
        let seen = match self.storage.look(article, guard.stamp()).await {
            Err(error) if error.is_stale() => return Ok(Visit::TakenOver),
            seen => seen?,
        };
        self.learn(index, seen.next);
        let Some(booking) = pack(article, seen, guard.fence()).await else {
            return Ok(Visit::Finished);
        };
        let visit = self.book(article, seen.next, &booking).await?;
        if visit == Visit::Booked {
            self.learn(index, seen.next + 1);
        }
        Ok(visit)
    }

    /// Writes a booking under the article's lock.
    ///
    /// It locks for itself and knows nothing of a caller who has the lock already: in the scope of
    /// that caller's owner this is a re-entry, of the same lease with the same fence.
    async fn book(
        &self,
        article: &Article,
        at: usize,
        booking: &Booking,
    ) -> Result<Visit, Failure> {
        let guard = match self.lock(article)?.acquire().await {
            Err(AcquireError::Lost { .. }) => return Ok(Visit::TakenOver),
            guard => guard?,
        };
        if guard.fence().get() != booking.fence {
            self.other_fence.fetch_add(1, Ordering::Relaxed);
        }
        let booked = self.storage.book(article, at, booking, guard.stamp()).await;
        drop(guard.release().await);
        match booked {
            Err(error) if error.is_stale() => Ok(Visit::TakenOver),
            booked => Ok(booked.map(|()| Visit::Booked)?),
        }
    }

    fn learn(&self, index: usize, done: usize) {
        let before = self.done[index].fetch_max(done, Ordering::Relaxed);
        self.progress.add(done.saturating_sub(before));
    }
}

/// Packs the parcel of an article's next order, which takes its time.
pub(crate) async fn pack(article: &Article, shelf: Shelf, fence: FenceToken) -> Option<Booking> {
    let order = *article.orders.get(shelf.next)?;
    pause(Duration::from_millis(u64::from(3 + order.pieces % 4))).await;
    Some(shelf.apply(order, fence.get()))
}
