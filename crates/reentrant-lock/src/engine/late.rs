use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold_core::{Clock, backoff, store::Withdraw};
use leasehold_watchdog::Key;
use tokio::select;

use crate::{
    durations::{MOMENT, PLACE_PAUSE},
    queue::unheard,
};

use super::{
    backlog::InHand, core::Engine, delivery::Delivery, repeat_rules::DeliveryEnd, sending::Sending,
};

/// The task that sends the withdrawals of the backlog, until there are none. It does not keep the
/// engine alive.
pub(super) struct LateSender {
    engine: Weak<Engine>,
    clock: Arc<dyn Clock>,
}

impl LateSender {
    /// Keeps a withdrawal; returns `false` if there are too many, or its time is over.
    pub(super) fn postpone(engine: &Arc<Engine>, key: Key, withdrawal: &Delivery) -> bool {
        if engine.clock.now() >= withdrawal.gives_up_at {
            return false;
        }
        let needs_task = engine.outbox.postpone(key, withdrawal.clone());
        if needs_task == Some(true) {
            let (clock, weak) = (Arc::clone(&engine.clock), Arc::downgrade(engine));
            engine.spawn(Self { engine: weak, clock }.run());
        }
        needs_task.is_some()
    }

    async fn run(self) {
        let mut failures = 0;
        loop {
            let pause = {
                let Some(engine) = self.engine.upgrade() else { return };
                let Some(in_hand) = engine.outbox.backlog.next() else { return };
                let Some(longest) = Self::send_one(&engine, in_hand).await else {
                    failures = 0;
                    continue;
                };
                let jitter = engine.entropy.fraction();
                backoff(PLACE_PAUSE..=longest, failures, jitter)
            };
            failures += 1;
            self.clock.sleep_until(self.clock.now() + pause).await;
        }
    }

    /// Sends one withdrawal, and if it is answered, the others, too. Returns `None` if it was answered,
    /// otherwise the longest pause before the next copy.
    async fn send_one(engine: &Arc<Engine>, in_hand: InHand<'_>) -> Option<Duration> {
        let now = engine.clock.now();
        let Delivery { name, id, ttl, gives_up_at, .. } = in_hand.withdrawal()?;
        if now >= *gives_up_at {
            Self::end(engine, in_hand, DeliveryEnd::Unconfirmed);
            return None;
        }
        let deadline = now + engine.timing.command_deadline(*ttl);
        let withdraw = Withdraw { name: name.clone(), id: *id };
        let answer = select! {
            biased;
            answer = engine.store.ask(now, withdraw, deadline) => answer,
            () = engine.clock.sleep_until(deadline + MOMENT) => Err(unheard()),
        };
        let end = match engine.counted(answer) {
            Ok(answer) if answer.ended_grant => DeliveryEnd::Released,
            Ok(_) => DeliveryEnd::Gone,
            Err(error) if error.kind().is_transient() => {
                let longest = engine.timing.heartbeat_pause(*ttl);
                in_hand.put_back();
                return Some(longest);
            }
            Err(_) => DeliveryEnd::Unconfirmed,
        };
        Self::end(engine, in_hand, end);
        for (key, withdrawal) in engine.outbox.backlog.take() {
            let sending = Sending::again(engine, key, withdrawal);
            engine.spawn(async move { drop(sending.run().await) });
        }
        None
    }

    fn end(engine: &Engine, in_hand: InHand<'_>, end: DeliveryEnd) {
        let Some((key, withdrawal)) = in_hand.take() else { return };
        engine.on_withdrawn(&withdrawal);
        withdrawal.count(end);
        engine.outbox.done(key, end);
    }
}
