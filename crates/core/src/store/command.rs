use std::time::Duration;

use super::{
    AcquireAnswer, ForceReleaseAnswer, HoldAnswer, Inspection, ReleaseAnswer, RenewAnswer, Scan,
    ScanPage, StoreError, WithdrawAnswer,
};
use crate::{
    lease::HoldUpdate,
    types::{AcquisitionId, Fence, LockName, Mode, Replication, RuntimeLabel, Ttl},
};

/// What a runtime asks of a store. It owns its words, so it can wait, travel with others, and be sent
/// again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Asks for a lock.
    Acquire(Acquire),
    /// Repeats the acquires of a batch of waiters.
    Heartbeat(Heartbeats),
    /// Tells the number of holds.
    Hold(Hold),
    /// Ends or keeps a lease.
    Release(Release),
    /// Extends a batch of leases.
    Renew(Renewals),
    /// Takes an acquisition back.
    Withdraw(Withdraw),
    /// Looks at locks.
    Inspect(Inspect),
    /// Names some locks.
    Scan(Scan),
    /// Ends somebody else's lease.
    ForceRelease(ForceRelease),
}

/// The reply to a [`Command`], of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To an [`Acquire`].
    Acquire(AcquireAnswer),
    /// To [`Heartbeats`], one for each.
    Heartbeat(Vec<Result<AcquireAnswer, StoreError>>),
    /// To a [`Hold`].
    Hold(HoldAnswer),
    /// To a [`Release`].
    Release(ReleaseAnswer),
    /// To [`Renewals`], one for each.
    Renew(Vec<Result<RenewAnswer, StoreError>>),
    /// To a [`Withdraw`].
    Withdraw(WithdrawAnswer),
    /// To an [`Inspect`], one for each.
    Inspect(Vec<Result<Inspection, StoreError>>),
    /// To a [`Scan`].
    Scan(ScanPage),
    /// To a [`ForceRelease`].
    ForceRelease(ForceReleaseAnswer),
}

impl Reply {
    /// The failure that it tells: that of a batch, if none of its names succeeded.
    pub(crate) fn failure(&self) -> Option<&StoreError> {
        match self {
            Self::Heartbeat(replies) => failure_of_batch(replies),
            Self::Renew(replies) => failure_of_batch(replies),
            Self::Inspect(replies) => failure_of_batch(replies),
            Self::Acquire(_)
            | Self::Hold(_)
            | Self::Release(_)
            | Self::Withdraw(_)
            | Self::Scan(_)
            | Self::ForceRelease(_) => None,
        }
    }

    /// Every failure that it tells.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &StoreError> {
        fn of<T>(replies: &[Result<T, StoreError>]) -> Vec<&StoreError> {
            replies.iter().filter_map(|reply| reply.as_ref().err()).collect()
        }
        match self {
            Self::Heartbeat(replies) => of(replies),
            Self::Renew(replies) => of(replies),
            Self::Inspect(replies) => of(replies),
            Self::Scan(page) => page.failed.iter().collect(),
            Self::Acquire(_)
            | Self::Hold(_)
            | Self::Release(_)
            | Self::Withdraw(_)
            | Self::ForceRelease(_) => Vec::new(),
        }
        .into_iter()
    }
}

/// None if one succeeded; else a sign of life, if there is one.
fn failure_of_batch<T>(replies: &[Result<T, StoreError>]) -> Option<&StoreError> {
    let failures: Option<Vec<_>> = replies.iter().map(|reply| reply.as_ref().err()).collect();
    failures?.into_iter().min_by_key(|error| !error.is_sign_of_life())
}

/// A command with the type of its reply.
pub trait Request: Into<Command> {
    /// What a store replies.
    type Reply: Into<Reply> + TryFrom<Reply, Error = Reply>;
}

/// Ties each command to its reply.
macro_rules! requests {
    ($($kind:ident($request:ty) -> $reply:ty;)+) => {
        $(
            impl From<$request> for Command {
                fn from(request: $request) -> Self {
                    Self::$kind(request)
                }
            }

            impl Request for $request {
                type Reply = $reply;
            }

            impl From<$reply> for Reply {
                fn from(reply: $reply) -> Self {
                    Self::$kind(reply)
                }
            }

            impl TryFrom<Reply> for $reply {
                type Error = Reply;

                fn try_from(reply: Reply) -> Result<Self, Reply> {
                    match reply {
                        Reply::$kind(reply) => Ok(reply),
                        other => Err(other),
                    }
                }
            }
        )+
    };
}

requests! {
    Acquire(Acquire) -> AcquireAnswer;
    Heartbeat(Heartbeats) -> Vec<Result<AcquireAnswer, StoreError>>;
    Hold(Hold) -> HoldAnswer;
    Release(Release) -> ReleaseAnswer;
    Renew(Renewals) -> Vec<Result<RenewAnswer, StoreError>>;
    Withdraw(Withdraw) -> WithdrawAnswer;
    Inspect(Inspect) -> Vec<Result<Inspection, StoreError>>;
    Scan(Scan) -> ScanPage;
    ForceRelease(ForceRelease) -> ForceReleaseAnswer;
}

impl Command {
    /// The command in a word, for logs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Acquire(_) => "acquire",
            Self::Heartbeat(_) => "heartbeat",
            Self::Hold(_) => "hold",
            Self::Release(_) => "release",
            Self::Renew(_) => "renew",
            Self::Withdraw(_) => "withdraw",
            Self::Inspect(_) => "inspect",
            Self::Scan(_) => "scan",
            Self::ForceRelease(_) => "force_release",
        }
    }
}

/// Asks for a lock, by acquisition id: a repeat is answered with the same grant.
///
/// Grants a lock that nobody holds or waits for. Otherwise it queues the asker, or returns how long the
/// present lease has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquire {
    /// The lock.
    pub name: LockName,
    /// The acquisition; its id is never used for another.
    pub id: AcquisitionId,
    /// Whether it asks to write, or to read with others. A quorum refuses readers.
    pub mode: Mode,
    /// How long the lease lives without renewal.
    pub ttl: Ttl,
    /// The largest token that the asking runtime has seen for this name.
    pub watermark: Option<Fence>,
    /// The asking runtime's label, kept with the lease.
    pub label: RuntimeLabel,
    /// Whether the runtime may keep the lock idle after its last lease: those who queue behind it
    /// then have it recalled.
    pub keeps: bool,
    /// How to stand in the queue if the lock is taken; `None` tries and does not wait.
    pub wait: Option<Heartbeat>,
    /// Which acknowledgements a grant needs.
    pub acks: Replication,
}

/// A heartbeat of a waiter: it keeps the place in the queue alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// The number of this heartbeat, greater than all earlier ones of the runtime. The grant
    /// returns the greatest one of the place: belief starts when that heartbeat was sent.
    pub number: u64,
    /// How long a grant out of the queue lives until its first renewal, and a place without another
    /// heartbeat; at most the ttl.
    pub claim_window: Duration,
}

impl Heartbeat {
    /// The claim window in whole milliseconds: at most the ttl, at least one.
    #[doc(hidden)]
    pub fn window(&self, ttl: Ttl) -> Duration {
        whole_millis(self.claim_window).clamp(Duration::from_millis(1), ttl.get())
    }
}

/// Repeats the acquires of many waiters of one runtime; one answer for each, in order. Each counts as
/// an [`Acquire`] of its own. A corrupt key spoils only its own answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeats {
    /// Who waits.
    pub batch: Vec<Waiter>,
    /// The runtime's label, kept with the leases.
    pub label: RuntimeLabel,
}

/// One waiter of a batch: an [`Acquire`] with a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// The lock.
    pub name: LockName,
    /// Who waits.
    pub id: AcquisitionId,
    /// Whether it asks to write, or to read; see [`Acquire::mode`].
    pub mode: Mode,
    /// How long the lease lives once it is renewed.
    pub ttl: Ttl,
    /// The largest token that the asking runtime has seen for this name.
    pub watermark: Option<Fence>,
    /// Whether the runtime may keep the lock idle; see [`Acquire::keeps`].
    pub keeps: bool,
    /// The heartbeat.
    pub heartbeat: Heartbeat,
}

/// Sets the absolute number of holds of a lease, and extends it; never grants. A store keeps no holds of readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The lock.
    pub name: LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The first token of its grant.
    pub fence: Fence,
    /// The holds, with the number of this change.
    pub update: HoldUpdate,
    /// The ttl to which the lease is extended.
    pub ttl: Ttl,
    /// Which acknowledgements the extension needs.
    pub acks: Replication,
}

/// Ends a lease, and grants the lock to the next waiter in the same step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The lock.
    pub name: LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The first token of its grant.
    pub fence: Fence,
    /// The lease ends, but the lock stays closed for exactly this long, once, and is granted to nobody; stores
    /// take it from [`Release::keep_in_range`]. Ignored for a reader.
    pub keep: Option<Duration>,
    /// The next acquisition of the same runtime, to queue behind the others. Ignored with `keep`.
    pub next: Option<Next>,
}

/// The acquisition with which a runtime queues again when its turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The acquisition; never used before, and the same in every repeat of the release.
    pub id: AcquisitionId,
    /// Whether it asks to write, or to read; see [`Acquire::mode`].
    pub mode: Mode,
    /// How long the new lease lives once it is renewed.
    pub ttl: Ttl,
    /// The largest token that the runtime has seen for this name.
    pub watermark: Option<Fence>,
    /// The runtime's label, kept with the lease.
    pub label: RuntimeLabel,
    /// Whether the runtime may keep the lock idle; see [`Acquire::keeps`].
    pub keeps: bool,
    /// The heartbeat under which it is queued.
    pub heartbeat: Heartbeat,
}

impl Release {
    /// How long to keep the lease closed: in whole milliseconds, moved into 1 ms to [`Ttl::MAX`],
    /// so that every store keeps it equally long.
    pub fn keep_in_range(&self) -> Option<Duration> {
        let range = |keep: Duration| keep.clamp(Duration::from_millis(1), Ttl::MAX);
        self.keep.map(|keep| whole_millis(range(keep)))
    }
}

/// A time without its fraction of a millisecond, as Redis counts it.
pub(crate) fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Extends leases; one answer or failure for each, in order. Never re-creates one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewals {
    /// The leases.
    pub batch: Vec<Renewal>,
}

/// Extends one lease of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The lock.
    pub name: LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The first token of its grant.
    pub fence: Fence,
    /// The ttl to which the lease is extended.
    pub ttl: Ttl,
    /// Which acknowledgements the extension needs.
    pub acks: Replication,
}

/// Takes back an acquisition that no task waits for any more: its place, or its grant, which the next
/// waiter gets. A late copy of its acquire has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdraw {
    /// The lock.
    pub name: LockName,
    /// The acquisition to take back.
    pub id: AcquisitionId,
}

/// Asks who holds locks, and who waits for them; one answer for each, in order. A corrupt key spoils
/// only its own answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspect {
    /// The locks.
    pub names: Vec<LockName>,
}

/// Ends the lease of another holder, exactly the one that was inspected, moves the fence on, tells its
/// runtime, and grants the lock to the next waiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForceRelease {
    /// The lock.
    pub name: LockName,
    /// The acquisition that was seen holding it.
    pub id: AcquisitionId,
    /// The fence that was seen.
    pub fence: Fence,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{HoldAnswer, StoreErrorKind, of_its_kind};

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
            assert_eq!(reply.failure(), Some(&failed), "{reply:?}");
        }
        assert_eq!(Reply::from(WithdrawAnswer { ended_grant: false }).failure(), None);
    }

    #[test]
    fn a_reply_of_another_kind_is_an_error() {
        let reply = || Reply::from(WithdrawAnswer { ended_grant: true });
        assert_eq!(of_its_kind(reply()), Ok(WithdrawAnswer { ended_grant: true }));
        let error = of_its_kind::<HoldAnswer>(reply()).expect_err("a hold has another answer");
        assert_eq!(error.kind(), StoreErrorKind::Indeterminate);
    }
}
