use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use leasehold_core::{AtHome, Instant, Sleep, StoreError};
use leasehold_watchdog::{HeldLease, Key};

use crate::{
    queue::{TurnId, unheard},
    release::DeliveryEnd,
};

use super::{core::Engine, delivery::Delivery, sending::Sending};

/// A command in the hands of the task that waits for its answer. Dropped before it is answered, as
/// with a cancelled future, it goes on in the runtime from where it stands.
///
/// It counts as pending. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    key: Key,
    /// The lease whose turn ends with it, and whose holder waits for the answer.
    attended: Option<Arc<HeldLease>>,
    sending: Option<SendingFuture>,
}

type SendingFuture = Pin<Box<dyn Future<Output = Result<DeliveryEnd, StoreError>> + Send>>;

impl Cleanup {
    /// Makes a command ready; `None` when too many are pending.
    pub(super) fn new(
        engine: Arc<Engine>,
        delivery: Delivery,
        attended: Option<Arc<HeldLease>>,
    ) -> Option<Self> {
        let sending = Sending::new(&engine, delivery)?;
        let key = sending.key;
        Some(Self { engine, key, attended, sending: Some(Box::pin(sending.run())) })
    }

    /// Waits until the command is done, and until `until` at most; then it goes on in the runtime.
    ///
    /// `is_enough`: a failed first attempt also ends the wait. `is_its_deadline`: `until` is that
    /// of the first attempt, which fails by itself then, so that no timer is set before.
    pub(crate) async fn wait(
        mut self,
        until: Instant,
        mut is_its_deadline: bool,
        is_enough: bool,
    ) -> Result<DeliveryEnd, StoreError> {
        let (mut timer, mut is_first_poll) = (None::<Sleep>, true);
        // By hand: a release that is answered in time sets no timer.
        poll_fn(move |cx| {
            // It is first polled where it was made.
            if !mem::take(&mut is_first_poll)
                && let Err(error) = self.engine.check_process()
            {
                return Poll::Ready(Err(error));
            }
            let Some(sending) = &mut self.sending else { return Poll::Ready(Err(unheard())) };
            if let Poll::Ready(end) = sending.as_mut().poll(cx) {
                self.sending = None;
                return Poll::Ready(end);
            }
            let outbox = &self.engine.outbox;
            if is_enough && let Some(failure) = outbox.failure(self.key) {
                return Poll::Ready(Err(failure));
            }
            // The first attempt has a deadline of its own: as a rule no timer is needed.
            if mem::take(&mut is_its_deadline) {
                return Poll::Pending;
            }
            let clock = &self.engine.clock;
            let timer = timer.get_or_insert_with(|| clock.sleep_until(until));
            if timer.as_mut().poll(cx).is_pending() && clock.now() < until {
                return Poll::Pending;
            }
            Poll::Ready(Err(outbox.failure(self.key).unwrap_or_else(unheard)))
        })
        .await
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(sending) = self.sending.take() else { return };
        if self.engine.is_forked() {
            return mem::forget(sending);
        }
        if let Some(lease) = &self.attended {
            let turn = TurnId::of(lease.turn());
            self.engine.with(lease.name(), |entry, _| entry.state.on_release_left(turn));
        }
        let Self { engine, .. } = self;
        let work = AtHome::new(engine.outages().origin(), &engine.clock, sending);
        drop(engine.handle().spawn(work));
    }
}
