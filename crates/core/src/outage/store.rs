use std::{
    future::{Future, ready},
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
};

use super::{subject::Subject, watch::OutageWatch};
use crate::{
    clock::Instant,
    store::{Listener, LockStore, Reply, Request, StoreError, StoreFuture, of_its_kind},
    types::{LockName, RuntimeId},
};

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
        let watch = &self.watch;
        let command = request.into();
        let subject = Subject::of(&command);
        let (sending, unanswered): (StoreFuture<'_, Reply>, _) = if watch.origin().is_here(now) {
            watch.sent(now);
            (self.store.send(command, deadline), Some(watch))
        } else {
            (Box::pin(ready(Err(watch.origin().error()))), None)
        };
        Watched { subject, sent_at: now, sending, unanswered, kind: PhantomData }
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

/// A command on its way, whose reply is a `T`. Dropped before its reply, it counts as given up.
#[must_use = "a command without a reply has an unknown outcome"]
pub struct Watched<'a, T> {
    subject: Subject,
    sent_at: Instant,
    sending: StoreFuture<'a, Reply>,
    /// Told of the reply; `None` once it was, and if nothing was sent.
    unanswered: Option<&'a Arc<OutageWatch>>,
    kind: PhantomData<fn() -> T>,
}

// A future of its own for its destructor, and to have a name.
impl<T: TryFrom<Reply, Error = Reply>> Future for Watched<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = ready!(self.sending.as_mut().poll(cx));
        let failed_batch = reply.as_ref().ok().and_then(failure_of).cloned();
        let reply = reply.and_then(of_its_kind);
        if let Some(watch) = self.unanswered.take() {
            let failure = reply.as_ref().err().or(failed_batch.as_ref());
            watch.ended(&self.subject, self.sent_at, failure);
        }
        Poll::Ready(reply)
    }
}

impl<T> Drop for Watched<'_, T> {
    fn drop(&mut self) {
        if let Some(watch) = self.unanswered {
            watch.given_up();
        }
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
