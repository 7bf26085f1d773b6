use std::sync::{Arc, Weak};

use super::{
    command::{CommandKind, Subject},
    watch::OutageWatch,
};
use crate::{
    clock::Instant,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreError, StoreFuture,
        Waiter, Withdraw, WithdrawAnswer,
    },
    types::{LockName, RuntimeId, RuntimeLabel},
};

/// A store that reports every command, answer and failure to an [`OutageWatch`].
///
/// All commands of a runtime pass here.
#[derive(Debug)]
pub struct WatchedStore {
    store: Arc<dyn LockStore>,
    watch: Arc<OutageWatch>,
}

impl WatchedStore {
    /// Tells `watch` of what happens on `store`.
    pub fn new(store: Arc<dyn LockStore>, watch: Arc<OutageWatch>) -> Self {
        Self { store, watch }
    }

    /// Passes a command on. A command counts as sent when it is made.
    fn pass<'a, T: 'a>(
        &'a self,
        subject: Subject<'a>,
        sending: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        let in_flight = self.watch.sent(subject);
        Box::pin(async move {
            let answer = sending.await;
            match &answer {
                Ok(_) => in_flight.answered(),
                Err(error) => in_flight.failed(error),
            }
            answer
        })
    }
}

impl LockStore for WatchedStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        let subject = Subject::lock(CommandKind::Acquire, command.name);
        self.pass(subject, self.store.acquire(command))
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        let subject = match batch {
            [one] => Subject::lock(CommandKind::Heartbeat, &one.name),
            _ => Subject::many(CommandKind::Heartbeat),
        };
        let in_flight = self.watch.sent(subject);
        let sending = self.store.heartbeat(batch, label, deadline);
        Box::pin(async move {
            let answers = sending.await;
            match &answers {
                Ok(answers) => match failure_of_all(answers) {
                    Some(error) => in_flight.failed(error),
                    None => in_flight.answered(),
                },
                Err(error) => in_flight.failed(error),
            }
            answers
        })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.store.listen(runtime, listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let Hold { name, id, fence, .. } = command;
        let subject = Subject::lease(CommandKind::Hold, name, id, fence);
        self.pass(subject, self.store.hold(command))
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let Release { name, id, fence, .. } = command;
        let subject = Subject::lease(CommandKind::Release, name, id, fence);
        self.pass(subject, self.store.release(command))
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>> {
        let subject = match batch {
            [one] => Subject::lease(CommandKind::Renew, &one.name, one.id, one.fence),
            _ => Subject::many(CommandKind::Renew),
        };
        self.pass(subject, self.store.renew(batch, deadline))
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        let subject = Subject::lock(CommandKind::Withdraw, command.name);
        self.pass(subject, self.store.withdraw(command))
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        let subject = Subject::lock(CommandKind::Inspect, name);
        self.pass(subject, self.store.inspect(name, deadline))
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        let ForceRelease { name, id, fence, .. } = command;
        let subject = Subject::lease(CommandKind::ForceRelease, name, id, fence);
        self.pass(subject, self.store.force_release(command))
    }
}

/// The failure of a batch, if none of its names was answered.
fn failure_of_all<T>(answers: &[Result<T, StoreError>]) -> Option<&StoreError> {
    let was_answered = |answer: &Result<T, StoreError>| match answer {
        Ok(_) => true,
        Err(error) => error.is_answer(),
    };
    if answers.iter().any(was_answered) {
        return None;
    }
    let failures = || answers.iter().filter_map(|answer| answer.as_ref().err());
    failures().find(|error| error.is_sign_of_life()).or_else(|| failures().next())
}
