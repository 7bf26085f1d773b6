use leasehold_core::{
    Instant, LockName, LockStore,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Withdraw, WithdrawAnswer,
    },
};

use super::{answer::Answer, command::Command, faulty_store::FaultyStore};

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
        let Acquire { name, id, ttl, watermark, label, deadline } = command;
        let (name, label) = (name.clone(), label.clone());
        send!(self, Acquire, Command::Acquire { name, id, ttl, watermark, label }, deadline)
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let Hold { name, id, fence, update, ttl, deadline } = command;
        let name = name.clone();
        send!(self, Hold, Command::Hold { name, id, fence, update, ttl }, deadline)
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let Release { name, id, fence, keep, deadline } = command;
        let name = name.clone();
        send!(self, Release, Command::Release { name, id, fence, keep }, deadline)
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
