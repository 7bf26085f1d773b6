use std::time::Duration;

use leasehold::{Guard, WithError};
use tokio::sync::Notify;

use crate::{
    article::Article,
    desk::{Desk, pack},
    failure::Failure,
    pause::pause,
    shelf::Booking,
    storage::{Storage, StorageError},
    tally::Tally,
};

/// A worker that took an order and will stall past its lease, with the parcel in its hands.
pub(crate) struct Stall<'a> {
    article: &'a Article,
    guard: Guard,
    at: usize,
    booking: Booking,
}

impl<'a> Stall<'a> {
    /// After this time the lease of the stalled worker ends.
    const MAX_HOLD: Duration = Duration::from_millis(250);
    /// Stock is taken for longer than this lease lives by itself, so it has to be renewed.
    const COUNTING_TTL: Duration = Duration::from_millis(600);
    const COUNTING: Duration = Duration::from_millis(900);

    /// Takes a cold article that has orders left; `None` when a run is as good as done.
    pub(crate) async fn begin<S: Storage>(
        desk: &'a Desk<S>,
        tally: &mut Tally,
    ) -> Result<Option<Self>, Failure> {
        let cold: Vec<_> = desk.file.articles.iter().filter(|article| !article.is_hot()).collect();
        // Every copy begins elsewhere, so that they do not queue up for their stalls.
        let first = desk.locks.id().to_string().bytes().map(usize::from).sum::<usize>() * 31;
        for step in 0..cold.len() {
            let article = cold[(first + step) % cold.len()];
            let acquire = desk.lock(article)?.acquire().max_hold(Self::MAX_HOLD);
            let Some(guard) = acquire.try_now().await? else { continue };
            let shelf = match desk.storage.look(article, guard.stamp()).await {
                Err(error) if error.is_stale() => continue,
                shelf => shelf?,
            };
            if let Some(booking) = pack(article, shelf, guard.fence()).await {
                tally.stalls += 1;
                return Ok(Some(Self { article, guard, at: shelf.next, booking }));
            }
            drop(guard.release().await);
        }
        Ok(None)
    }

    /// Stalls until another has the shelf, and writes as if nothing had happened.
    pub(crate) async fn run<S: Storage>(
        self,
        desk: &Desk<S>,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let taken = Notify::new();
        // A worker that looked at `guard.lost()` would stop here; this one does not.
        let late_write = async {
            taken.notified().await;
            let told = !self.guard.is_held();
            let stamp = self.guard.stamp();
            let late = desk.storage.book(self.article, self.at, &self.booking, stamp).await;
            Ok::<_, Failure>((told, late))
        };
        let ((told, late), ()) =
            tokio::try_join!(late_write, take_stock(desk, self.article, &taken))?;
        match late {
            Err(error) if error.is_stale() => tally.late_refused += 1,
            late => late?,
        }
        tally.told += u64::from(told);
        // It was lost long ago.
        drop(self.guard.release().await);
        Ok(())
    }
}

/// Waits for the shelf of a stalled worker, takes it over, and holds it for long.
async fn take_stock<S: Storage>(
    desk: &Desk<S>,
    article: &Article,
    taken: &Notify,
) -> Result<(), Failure> {
    loop {
        let acquire = desk.lock(article)?.acquire().ttl(Stall::COUNTING_TTL);
        let counting = acquire.with(|lease| async move {
            desk.storage.look(article, lease.stamp()).await?;
            // From here on the fence of the stalled worker is stale.
            taken.notify_one();
            pause(Stall::COUNTING).await;
            Ok::<_, StorageError>(())
        });
        match counting.await {
            Ok(()) => return Ok(()),
            // Somebody else has taken over in turn, on a machine that is very busy.
            Err(WithError::Lost { .. }) => {}
            Err(WithError::Body(error)) if error.is_stale() => {}
            Err(error) => return Err(error.into()),
        }
    }
}
