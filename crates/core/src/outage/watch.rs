use std::{
    future::{Future, ready},
    marker::PhantomData,
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
        Command, Heartbeats, Inspect, Listener, LockStore, Renewals, Reply, Request, StoreError,
        StoreFuture, of_its_kind,
    },
    types::{FenceToken, LockName, RuntimeId},
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
    fn ended(&self, subject: &Subject, sent_at: Instant, error: Option<&StoreError>) {
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
                lock = lock.as_ref().map(tracing::field::display),
                lease = lease.map(tracing::field::display),
                fence = fence.map(tracing::field::display),
                %error,
                "a command failed"
            );
        }
    }
}

/// A store whose commands, replies and failures are reported to an [`OutageWatch`].
///
/// In a fork of its process no command is sent, and each fails: two processes would have the same
/// ids. All commands of a runtime pass here. Each takes the time at which it is sent, and is on its way
/// when it is made.
#[derive(Debug)]
pub struct WatchedStore {
    store: Arc<dyn LockStore>,
    watch: Arc<OutageWatch>,
}

/// A command on its way, whose reply is a `T`. Dropped before its reply, it counts as given up.
#[must_use = "a command without a reply has an unknown outcome"]
pub struct Watched<'a, T> {
    watch: &'a OutageWatch,
    subject: Subject,
    sent_at: Instant,
    sending: StoreFuture<'a, Reply>,
    /// Whether it was sent at all.
    is_here: bool,
    is_answered: bool,
    kind: PhantomData<fn() -> T>,
}

impl<T: TryFrom<Reply, Error = Reply>> Future for Watched<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = ready!(self.sending.as_mut().poll(cx));
        self.is_answered = true;
        let failed_batch = reply.as_ref().ok().and_then(failure_of).cloned();
        let reply = reply.and_then(of_its_kind);
        if self.is_here {
            let failure = reply.as_ref().err().or(failed_batch.as_ref());
            self.watch.ended(&self.subject, self.sent_at, failure);
        }
        Poll::Ready(reply)
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

    /// Sends a command at `now`, as [`send`](LockStore::send) does.
    pub fn ask<R: Request>(
        &self,
        now: Instant,
        request: R,
        deadline: Instant,
    ) -> Watched<'_, R::Reply> {
        let Self { store, watch } = self;
        let command = request.into();
        let subject = Subject::of(&command);
        let is_here = watch.origin.is_here(now);
        let sending = if is_here {
            watch.state.lock().silence.sent(now);
            store.send(command, deadline)
        } else {
            Box::pin(ready(Err(watch.origin.error())))
        };
        let (is_answered, kind) = (false, PhantomData);
        Watched { watch, subject, sent_at: now, sending, is_here, is_answered, kind }
    }

    /// Passes all pushes for a runtime to a listener; see [`listen`](LockStore::listen).
    pub fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.store.listen(runtime, listener);
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

/// The failure in a reply: that of a batch, if none of its names succeeded.
fn failure_of(reply: &Reply) -> Option<&StoreError> {
    match reply {
        Reply::Heartbeat(replies) => failure_of_batch(replies),
        Reply::Renew(replies) => failure_of_batch(replies),
        Reply::Inspect(replies) => failure_of_batch(replies),
        Reply::Acquire(_)
        | Reply::Hold(_)
        | Reply::Release(_)
        | Reply::Withdraw(_)
        | Reply::Scan(_)
        | Reply::ForceRelease(_) => None,
    }
}

/// One that is a sign of life, if there is one.
fn failure_of_batch<T>(replies: &[Result<T, StoreError>]) -> Option<&StoreError> {
    if replies.iter().any(Result::is_ok) {
        return None;
    }
    let failures = replies.iter().filter_map(|reply| reply.as_ref().err());
    failures.min_by_key(|error| !error.is_sign_of_life())
}

impl Subject {
    /// What a command is about.
    fn of(command: &Command) -> Self {
        let lease = |name: &LockName, id, fence| (Some(name.clone()), Some((id, fence)));
        let lock = |name: &LockName| (Some(name.clone()), None);
        let (lock, lease) = match command {
            Command::Acquire(one) => lock(&one.name),
            Command::Hold(one) => lease(&one.name, one.id, one.fence),
            Command::Release(one) => lease(&one.name, one.id, one.fence),
            Command::Withdraw(one) => lock(&one.name),
            Command::ForceRelease(one) => lease(&one.name, one.id, one.fence),
            Command::Heartbeat(Heartbeats { batch, .. }) => match &batch[..] {
                [one] => lock(&one.name),
                _ => (None, None),
            },
            Command::Renew(Renewals { batch }) => match &batch[..] {
                [one] => lease(&one.name, one.id, one.fence),
                _ => (None, None),
            },
            Command::Inspect(Inspect { names }) => match &names[..] {
                [name] => lock(name),
                _ => (None, None),
            },
            Command::Scan(_) => (None, None),
        };
        let (id, fence) = lease.unzip();
        Self { command: command.word(), lock, lease: id, fence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{HoldAnswer, StoreErrorKind, WithdrawAnswer};

    #[test]
    fn a_batch_fails_if_none_of_its_names_succeeds() {
        let failed = |what| StoreError::new(StoreErrorKind::Config, what, "look there");
        let (unheard, refused) = (failed("no answer"), failed("refused").as_answer());
        let [none, no] = [&unheard, &refused].map(|error| Err(error.clone()));
        let failure = |replies: &[_]| failure_of_batch(replies).cloned();
        assert_eq!(failure(&[no.clone(), no.clone()]), Some(refused.clone()));
        assert_eq!(failure(&[none.clone(), no.clone()]), Some(refused), "it is reached");
        assert_eq!(failure(&[none.clone(), none]), Some(unheard));
        assert_eq!(failure(&[no, Ok(())]), None);
        assert_eq!(failure(&[]), None);
    }

    #[test]
    fn a_look_that_fails_is_no_answer_and_neither_is_another_batch() {
        let failed = StoreError::new(StoreErrorKind::Config, "no answer", "look there");
        let replies = [
            Reply::Inspect(vec![Err(failed.clone())]),
            Reply::Renew(vec![Err(failed.clone())]),
            Reply::Heartbeat(vec![Err(failed.clone())]),
        ];
        for reply in replies {
            assert_eq!(failure_of(&reply), Some(&failed), "{reply:?}");
        }
        assert_eq!(failure_of(&WithdrawAnswer { ended_grant: false }.into()), None);
    }

    #[test]
    fn a_reply_of_another_kind_is_an_error() {
        let reply = || Reply::from(WithdrawAnswer { ended_grant: true });
        assert_eq!(of_its_kind(reply()), Ok(WithdrawAnswer { ended_grant: true }));
        let error = of_its_kind::<HoldAnswer>(reply()).expect_err("a hold has another answer");
        assert_eq!(error.kind(), StoreErrorKind::Indeterminate);
    }
}
