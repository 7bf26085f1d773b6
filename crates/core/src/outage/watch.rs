use std::{
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
};

use super::{
    journal::{AtStake, Journal, Line, LostLease, Subject},
    silence::Silence,
};
use crate::{
    clock::{Clock, Instant},
    mutex::Mutex,
    process::Origin,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, Scan, ScanPage,
        StoreError, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
    },
    types::{AcquisitionId, FenceToken, LockName, RuntimeId, RuntimeLabel},
};

/// What one runtime knows about outages of its server, fed with every command that it sends.
#[derive(Debug)]
pub struct OutageWatch {
    clock: Arc<dyn Clock>,
    origin: Origin,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    silence: Silence,
    journal: Journal,
    /// Whether the last command has succeeded.
    succeeded: bool,
}

impl OutageWatch {
    /// Nothing was sent yet by the runtime of a process.
    pub fn new(clock: Arc<dyn Clock>, origin: Origin) -> Self {
        Self { clock, origin, state: Mutex::default() }
    }

    /// The process of the runtime.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The clock of the runtime.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// What is known of the server's silence at this moment.
    pub fn silence(&self) -> Silence {
        self.state.lock().silence.clone()
    }

    /// A lease was lost at `now`.
    pub fn lost(&self, now: Instant, lease: LostLease<'_>) {
        let LostLease { lock, lease: id, fence, reason, .. } = lease;
        let line = self.state.lock().journal.lost(now, lease);
        if let Some(line) = line {
            line.write();
        } else {
            tracing::debug!(%lock, lease = %id, %fence, "lease lost: {reason}");
        }
    }

    /// A grant showed at `now` that the fence counter of a lock had lost data.
    pub fn regressed(&self, now: Instant, lock: &LockName, fence: FenceToken) {
        let line = self.state.lock().journal.regressed(now, lock, fence);
        line.iter().for_each(Line::write);
    }

    /// Logs what has happened since the last call; call it every few seconds, and at the end.
    pub fn tick(&self, now: Instant, at_stake: impl FnOnce() -> AtStake) {
        // Called outside of the lock, and only if a line is written.
        let has_news = self.state.lock().journal.has_news();
        let at_stake = has_news.then(at_stake);
        let lines = {
            let State { silence, journal, succeeded } = &mut *self.state.lock();
            let outage = silence.outage().map(|outage| now.saturating_since(outage.since));
            journal.tick(now, outage, at_stake, *succeeded)
        };
        lines.iter().for_each(Line::write);
    }

    /// A command was answered, or failed.
    fn ended(&self, subject: Subject<'_>, sent_at: Instant, error: Option<&StoreError>) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if error.is_none() && !state.silence.is_outage() {
            // As a rule.
            state.silence.answered(now);
            state.succeeded = true;
            return;
        }
        let (reached, failed) = {
            let State { silence, journal, succeeded } = &mut *state;
            let silent_since = match error {
                Some(error) if !error.is_sign_of_life() => {
                    silence.unanswered(sent_at, error.clone());
                    None
                }
                _ => silence.answered(now),
            };
            *succeeded = error.is_none();
            let reached =
                silent_since.and_then(|since| journal.reached(now, now.saturating_since(since)));
            (reached, error.and_then(|error| journal.failed(now, sent_at, subject, error)))
        };
        drop(state);
        reached.iter().chain(&failed).for_each(Line::write);
        if let (Some(error), None) = (error, &failed) {
            let Subject { command, lock, lease, fence } = subject;
            tracing::debug!(
                command,
                lock = lock.map(tracing::field::display),
                lease = lease.map(tracing::field::display),
                fence = fence.map(tracing::field::display),
                %error,
                "a command failed"
            );
        }
    }
}

/// A store whose commands, answers and failures are reported to an [`OutageWatch`].
///
/// In a fork of its process no command is sent, and each fails: two processes would have the same
/// ids. All commands of a runtime pass here. Each takes the time at which it is sent, and is on its way
/// when it is made. Errors and cancel safety are those of the [`LockStore`]. To be one, it would
/// have to box each command once more.
#[derive(Debug)]
pub struct WatchedStore {
    store: Arc<dyn LockStore>,
    watch: Arc<OutageWatch>,
}

/// A command on its way. Dropped before its answer, it counts as given up.
#[must_use = "a command without an answer has an unknown outcome"]
pub struct Watched<'a, T> {
    watch: &'a OutageWatch,
    subject: Subject<'a>,
    sent_at: Instant,
    sending: StoreFuture<'a, T>,
    failure: fn(&Result<T, StoreError>) -> Option<&StoreError>,
    /// Whether it was sent at all.
    is_here: bool,
    is_answered: bool,
}

impl<T> Future for Watched<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.sending.as_mut().poll(cx));
        self.is_answered = true;
        if self.is_here {
            self.watch.ended(self.subject, self.sent_at, (self.failure)(&answer));
        }
        Poll::Ready(answer)
    }
}

impl<T> Drop for Watched<'_, T> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let now = self.watch.clock.now();
        if self.watch.origin.is_here(now) {
            self.watch.state.lock().silence.given_up(now);
        }
    }
}

impl WatchedStore {
    /// Tells `watch` of what happens on `store`.
    pub fn new(store: Arc<dyn LockStore>, watch: Arc<OutageWatch>) -> Self {
        Self { store, watch }
    }

    fn pass<'a, T>(
        &'a self,
        now: Instant,
        subject: Subject<'a>,
        send: impl FnOnce(&'a dyn LockStore) -> StoreFuture<'a, T>,
    ) -> Watched<'a, T>
    where
        T: Send + 'a,
    {
        let Self { store, watch } = self;
        let is_here = watch.origin.is_here(now);
        let sending = if is_here {
            watch.state.lock().silence.sent(now);
            send(&**store)
        } else {
            Box::pin(ready(Err(watch.origin.error())))
        };
        Watched {
            watch,
            subject,
            sent_at: now,
            sending,
            failure: |answer| answer.as_ref().err(),
            is_here,
            is_answered: false,
        }
    }

    /// Passes an [`acquire`](LockStore::acquire) on.
    pub fn acquire<'a>(&'a self, now: Instant, command: Acquire<'a>) -> Watched<'a, AcquireAnswer> {
        let subject = Subject::lock("acquire", command.name);
        self.pass(now, subject, |store| store.acquire(command))
    }

    /// Passes a [`heartbeat`](LockStore::heartbeat) on.
    pub fn heartbeat<'a>(
        &'a self,
        now: Instant,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> Watched<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        let subject = match batch {
            [one] => Subject::lock("heartbeat", &one.name),
            _ => Subject::many("heartbeat"),
        };
        let mut watched = self.pass(now, subject, |store| store.heartbeat(batch, label, deadline));
        watched.failure = failure_of_batch;
        watched
    }

    /// Passes all pushes for a runtime to a listener; see [`listen`](LockStore::listen).
    pub fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.store.listen(runtime, listener);
    }

    /// Passes a [`hold`](LockStore::hold) on.
    pub fn hold<'a>(&'a self, now: Instant, command: Hold<'a>) -> Watched<'a, HoldAnswer> {
        let Hold { name, id, fence, .. } = command;
        let subject = Subject::lease("hold", name, id, fence);
        self.pass(now, subject, |store| store.hold(command))
    }

    /// Passes a [`release`](LockStore::release) on.
    pub fn release<'a>(&'a self, now: Instant, command: Release<'a>) -> Watched<'a, ReleaseAnswer> {
        let Release { name, id, fence, .. } = command;
        let subject = Subject::lease("release", name, id, fence);
        self.pass(now, subject, |store| store.release(command))
    }

    /// Passes a [`renew`](LockStore::renew) on.
    pub fn renew<'a>(
        &'a self,
        now: Instant,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> Watched<'a, Vec<Result<RenewAnswer, StoreError>>> {
        let subject = match batch {
            [one] => Subject::lease("renew", &one.name, one.id, one.fence),
            _ => Subject::many("renew"),
        };
        let mut watched = self.pass(now, subject, |store| store.renew(batch, deadline));
        watched.failure = failure_of_batch;
        watched
    }

    /// Passes a [`withdraw`](LockStore::withdraw) on.
    pub fn withdraw<'a>(
        &'a self,
        now: Instant,
        command: Withdraw<'a>,
    ) -> Watched<'a, WithdrawAnswer> {
        let subject = Subject::lock("withdraw", command.name);
        self.pass(now, subject, |store| store.withdraw(command))
    }

    /// Passes an [`inspect`](LockStore::inspect) on.
    pub fn inspect<'a>(
        &'a self,
        now: Instant,
        name: &'a LockName,
        deadline: Instant,
    ) -> Watched<'a, Inspection> {
        let subject = Subject::lock("inspect", name);
        self.pass(now, subject, |store| store.inspect(name, deadline))
    }

    /// Passes an [`inspect_all`](LockStore::inspect_all) on.
    pub fn inspect_all<'a>(
        &'a self,
        now: Instant,
        names: &'a [LockName],
        deadline: Instant,
    ) -> Watched<'a, Vec<Result<Inspection, StoreError>>> {
        let subject = Subject::many("inspect");
        let mut watched = self.pass(now, subject, |store| store.inspect_all(names, deadline));
        watched.failure = failure_of_batch;
        watched
    }

    /// Passes a [`scan`](LockStore::scan) on.
    pub fn scan<'a>(&'a self, now: Instant, command: Scan<'a>) -> Watched<'a, ScanPage> {
        self.pass(now, Subject::many("scan"), |store| store.scan(command))
    }

    /// Passes a [`force_release`](LockStore::force_release) on.
    pub fn force_release<'a>(
        &'a self,
        now: Instant,
        command: ForceRelease<'a>,
    ) -> Watched<'a, ForceReleaseAnswer> {
        let ForceRelease { name, id, fence, .. } = command;
        let subject = Subject::lease("force_release", name, id, fence);
        self.pass(now, subject, |store| store.force_release(command))
    }

    /// Whether the store ends with this process; see
    /// [`ends_with_process`](LockStore::ends_with_process).
    pub fn ends_with_process(&self) -> bool {
        self.store.ends_with_process()
    }

    /// Which part of the store a name lives in; see [`shard`](LockStore::shard).
    pub fn shard(&self, name: &LockName) -> usize {
        self.store.shard(name)
    }
}

/// The failure of a batch if none of its names succeeded: one that is a sign of life, if there is
/// one.
fn failure_of_batch<T>(
    answers: &Result<Vec<Result<T, StoreError>>, StoreError>,
) -> Option<&StoreError> {
    let answers = match answers {
        Ok(answers) if answers.iter().any(Result::is_ok) => return None,
        Ok(answers) => answers,
        Err(error) => return Some(error),
    };
    let failures = answers.iter().filter_map(|answer| answer.as_ref().err());
    failures.min_by_key(|error| !error.is_sign_of_life())
}

impl<'a> Subject<'a> {
    pub(super) fn many(command: &'static str) -> Self {
        Self { command, lock: None, lease: None, fence: None }
    }

    fn lock(command: &'static str, lock: &'a LockName) -> Self {
        Self { lock: Some(lock), ..Self::many(command) }
    }

    fn lease(
        command: &'static str,
        lock: &'a LockName,
        lease: AcquisitionId,
        fence: FenceToken,
    ) -> Self {
        Self { lease: Some(lease), fence: Some(fence), ..Self::lock(command, lock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreErrorKind;

    #[test]
    fn a_batch_fails_if_none_of_its_names_succeeds() {
        let failed = |what| StoreError::new(StoreErrorKind::Config, what, "look there");
        let (unheard, refused) = (failed("no answer"), failed("refused").as_answer());
        let [none, no] = [&unheard, &refused].map(|error| Err(error.clone()));
        let failure = |answers: &[_]| failure_of_batch(&Ok(answers.to_vec())).cloned();
        assert_eq!(failure(&[no.clone(), no.clone()]), Some(refused.clone()));
        assert_eq!(failure(&[none.clone(), no.clone()]), Some(refused), "it is reached");
        assert_eq!(failure(&[none.clone(), none]), Some(unheard.clone()));
        assert_eq!(failure(&[no, Ok(())]), None);
        assert_eq!(failure(&[]), None);
        assert_eq!(failure_of_batch::<()>(&Err(unheard.clone())), Some(&unheard));
    }
}
