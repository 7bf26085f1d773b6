use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use leasehold_core::{Instant, Sleep, StoreError};
use leasehold_watchdog::HeldLease;

use crate::{
    cohort::{TurnId, unheard},
    release::Outcome,
};

use super::{
    core::Engine,
    sending::{Job, Sending},
};

/// A job in the hands of the task that waits for it; dropped before it is done, it goes on in the
/// runtime from where it stands.
///
/// Made before an await, it makes sure that a cancelled future leaves nothing undone. It counts as
/// pending from then on. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    number: u64,
    /// The lease whose turn ends with it, and whose holder waits for the answer.
    attended: Option<Arc<HeldLease>>,
    work: Option<Work>,
}

type Work = Pin<Box<dyn Future<Output = Result<Outcome, StoreError>> + Send>>;

impl Cleanup {
    /// Makes a job ready; `None` when too many are pending.
    pub(crate) fn armed(
        engine: &Arc<Engine>,
        job: Job,
        attended: Option<Arc<HeldLease>>,
    ) -> Option<Self> {
        let sending = Sending::new(engine, job)?;
        let number = sending.number();
        let (engine, work) = (Arc::clone(engine), Some(Box::pin(sending.run()) as Work));
        Some(Self { engine, number, attended, work })
    }

    /// Waits until the job is done, or `until`, which is the deadline of the first attempt. The job goes
    /// on in the runtime then.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server has refused, or has not answered in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the job to the runtime.
    pub(crate) fn confirm(self, until: Instant) -> impl Confirmation {
        self.wait(until, true, true)
    }

    /// Waits until the first attempt was answered or has failed, or `until`; without a timer if that
    /// `is_its_deadline`.
    ///
    /// # Errors
    ///
    /// As [`confirm`](Self::confirm).
    ///
    /// # Cancel safety
    ///
    /// As [`confirm`](Self::confirm).
    pub(crate) fn attempt(self, until: Instant, is_its_deadline: bool) -> impl Confirmation {
        self.wait(until, is_its_deadline, false)
    }

    fn wait(
        mut self,
        until: Instant,
        mut ends_by_itself: bool,
        waits_for_more: bool,
    ) -> impl Confirmation {
        let mut timer = None::<Sleep>;
        poll_fn(move |cx| {
            let Some(work) = &mut self.work else { return Poll::Ready(Err(unheard())) };
            if let Poll::Ready(result) = work.as_mut().poll(cx) {
                self.work = None;
                return Poll::Ready(result);
            }
            let pending = &self.engine.pending;
            if !waits_for_more && let Some(failure) = pending.failure(self.number) {
                return Poll::Ready(Err(failure));
            }
            // The first attempt has a deadline of its own: as a rule no timer is needed.
            if std::mem::take(&mut ends_by_itself) {
                return Poll::Pending;
            }
            let clock = &self.engine.clock;
            let timer = timer.get_or_insert_with(|| clock.sleep_until(until));
            if timer.as_mut().poll(cx).is_pending() && clock.now() < until {
                return Poll::Pending;
            }
            Poll::Ready(Err(pending.failure(self.number).unwrap_or_else(unheard)))
        })
    }
}

/// How a job ended.
pub(crate) trait Confirmation:
    Future<Output = Result<Outcome, StoreError>> + Send + Unpin
{
}
impl<F: Future<Output = Result<Outcome, StoreError>> + Send + Unpin> Confirmation for F {}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if let Some(lease) = &self.attended {
            self.engine.on_release_left(lease.name(), TurnId::of(lease.turn()));
        }
        drop(self.engine.handle().spawn(work));
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup").field("number", &self.number).finish_non_exhaustive()
    }
}
