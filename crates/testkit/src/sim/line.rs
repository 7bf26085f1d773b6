use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use leasehold_core::{
    Clock, Instant, LockName, LockStore, RuntimeId, RuntimeLabel, StoreError,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Waiter, Withdraw,
        WithdrawAnswer,
    },
};

use super::{
    letter::Lane,
    wire::{Ticket, Wire},
};
use crate::{
    ManualClock,
    faulty::{Answer, Command},
};

/// A process's store: the server at the other end of a network that the world rules.
#[derive(Debug, Clone)]
pub struct Line {
    wire: Arc<Mutex<Wire>>,
    process: usize,
    clock: ManualClock,
    announce: Announce,
}

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

    /// Sends a command when it is first polled, and waits for what comes of it until its deadline.
    async fn send(&self, command: Command, deadline: Instant) -> Result<Answer, StoreError> {
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

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a command and unwraps the answer, which is of the same kind.
macro_rules! send {
    ($line:ident, $kind:ident, $command:expr, $deadline:expr) => {
        Box::pin(async move {
            match $line.send($command, $deadline).await? {
                Answer::$kind(answer) => Ok(answer),
                other => unreachable!("{other:?} is of another kind than its command"),
            }
        })
    };
}

impl LockStore for Line {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        let Acquire { name, id, ttl, watermark, label, wait, deadline } = command;
        let (name, label) = (name.clone(), label.clone());
        send!(self, Acquire, Command::Acquire { name, id, ttl, watermark, label, wait }, deadline)
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        Box::pin(self.send_heartbeats(batch, label, deadline))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        (self.announce.0)(runtime);
        self.wire().listen(self.process, listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let Hold { name, id, fence, update, ttl, deadline } = command;
        let name = name.clone();
        send!(self, Hold, Command::Hold { name, id, fence, update, ttl }, deadline)
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let Release { name, id, fence, keep, next, deadline } = command;
        let (name, next) = (name.clone(), next.map(Into::into));
        send!(self, Release, Command::Release { name, id, fence, keep, next }, deadline)
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>> {
        send!(self, Renew, Command::Renew { batch: batch.to_vec() }, deadline)
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        let Withdraw { name, id, deadline } = command;
        let name = name.clone();
        send!(self, Withdraw, Command::Withdraw { name, id }, deadline)
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        send!(self, Inspect, Command::Inspect { name: name.clone() }, deadline)
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        let ForceRelease { name, id, fence, deadline } = command;
        let name = name.clone();
        send!(self, ForceRelease, Command::ForceRelease { name, id, fence }, deadline)
    }
}
