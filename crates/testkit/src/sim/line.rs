use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use leasehold_core::{
    Clock, Instant, RuntimeId, RuntimeLabel, StoreError,
    store::{AcquireAnswer, Listener, Waiter},
};

use super::{
    letter::Lane,
    wire::{Ticket, Wire},
};
use crate::{
    ManualClock,
    faulty::{Answer, Command, by_commands::lock_store_by_commands},
};

/// A process's store: the server at the other end of a network that the world rules.
#[derive(Debug, Clone)]
pub struct Line {
    wire: Arc<Mutex<Wire>>,
    process: usize,
    clock: ManualClock,
    announce: Announce,
}

lock_store_by_commands!(Line);

/// Tells the world which runtime a process has.
#[derive(Clone)]
struct Announce(Arc<dyn Fn(RuntimeId) + Send + Sync>);

impl std::fmt::Debug for Announce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Announce")
    }
}

impl Line {
    pub(super) fn new(
        wire: Arc<Mutex<Wire>>,
        process: usize,
        clock: ManualClock,
        announce: impl Fn(RuntimeId) + Send + Sync + 'static,
    ) -> Self {
        Self { wire, process, clock, announce: Announce(Arc::new(announce)) }
    }

    /// Sends a command when it is first polled, and waits for its outcome until its deadline.
    async fn send(&self, command: Command, deadline: Instant) -> Result<Answer, StoreError> {
        if let Command::Heartbeat { batch, label } = &command {
            return self.send_heartbeats(batch, label, deadline).await.map(Answer::Heartbeat);
        }
        let ticket = self.wire().send(self.process, command);
        self.outcome(ticket, deadline).await
    }

    async fn outcome(&self, ticket: Ticket, deadline: Instant) -> Result<Answer, StoreError> {
        tokio::select! {
            biased;
            outcome = ticket.slot.taken() => outcome,
            () = self.clock.sleep_until(deadline) => Err(self.wire().time_out(&ticket)),
        }
    }

    /// Sends a batch, as one command for each connection that its names are pinned to.
    async fn send_heartbeats(
        &self,
        batch: &[Waiter],
        label: &RuntimeLabel,
        deadline: Instant,
    ) -> Result<Vec<Result<AcquireAnswer, StoreError>>, StoreError> {
        let mut parts = Vec::new();
        for lane in 0..Lane::NAMED {
            let here = |waiter: &&Waiter| Lane::of_name(&waiter.name) == lane;
            let batch: Vec<_> = batch.iter().filter(here).cloned().collect();
            if !batch.is_empty() {
                let command = Command::Heartbeat { batch, label: label.clone() };
                parts.push((lane, self.wire().send(self.process, command)));
            }
        }
        // All have been sent: waiting for one after the other takes no longer.
        let mut answers: [Option<_>; Lane::NAMED] = Default::default();
        for (lane, ticket) in parts {
            answers[lane] = Some(match self.outcome(ticket, deadline).await {
                Ok(Answer::Heartbeat(answers)) => Ok(answers.into_iter()),
                Ok(other) => unreachable!("{other:?} is of another kind than its command"),
                Err(error) => Err(error),
            });
        }
        let answer_of = |waiter: &Waiter| match &mut answers[Lane::of_name(&waiter.name)] {
            Some(Ok(answers)) => answers.next().expect("there is one answer for each waiter"),
            Some(Err(error)) => Err(error.clone()),
            None => unreachable!("every waiter was sent"),
        };
        Ok(batch.iter().map(answer_of).collect())
    }

    fn hear(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        (self.announce.0)(runtime);
        self.wire().listen(self.process, listener);
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
