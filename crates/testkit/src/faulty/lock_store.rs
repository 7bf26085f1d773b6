use std::sync::Weak;

use leasehold_core::{
    Instant, LockName, LockStore, RuntimeId, RuntimeLabel, StoreError,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Waiter, Withdraw,
        WithdrawAnswer,
    },
};

use super::{answer::Answer, command::Command, faulty_store::FaultyStore, next::OwnedNext};

/// Sends a command and unwraps the answer, which is of the same kind.
macro_rules! send {
    ($store:ident, $kind:ident, $command:expr, $deadline:expr) => {
        Box::pin(async move {
            match $store.send($command, $deadline).await? {
                Answer::$kind(answer) => Ok(answer),
                other => unreachable!("{other:?} is of another kind than its command"),
            }
        })
    };
}

impl LockStore for FaultyStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        let Acquire { name, id, ttl, watermark, label, wait, deadline } = command;
        let (name, label) = (name.clone(), label.clone());
        let command = Command::Acquire { name, id, ttl, watermark, label, wait };
        send!(self, Acquire, command, deadline)
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        let (batch, label) = (batch.to_vec(), label.clone());
        send!(self, Heartbeat, Command::Heartbeat { batch, label }, deadline)
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.hear(runtime, listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let Hold { name, id, fence, update, ttl, deadline } = command;
        let name = name.clone();
        send!(self, Hold, Command::Hold { name, id, fence, update, ttl }, deadline)
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let Release { name, id, fence, keep, next, deadline } = command;
        let (name, next) = (name.clone(), next.map(OwnedNext::from));
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
