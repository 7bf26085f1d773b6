use std::{fmt, time::Duration};

use leasehold_core::{AcquisitionId, Fence, Instant, LockName, StoreError, lease::HeardEnd};
use leasehold_watchdog::HeldLease;

use crate::graph::Cycle;

/// A wait that ended before the lock was free: the last word about the lock was that it is taken.
///
/// That is so if the server has said it and no later command of this wait failed, or if a task of
/// this process has the lock. Otherwise the wait ends as [`Unavailable`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WaitTimeout {
    /// The lock.
    pub lock: LockName,
    /// How long the call waited.
    pub waited: Duration,
    /// Where the call stood in line when it gave up; `None` for one that only tried.
    pub position: Option<QueuePosition>,
    /// Who holds the lock, if that could be found out.
    pub holder: Option<HolderInfo>,
    /// How the call may have waited for its own process, if something speaks for it.
    pub self_wait: Option<SelfWait>,
    /// The cycle of owners of this runtime that the call's owner is a part of, if there is one: none
    /// of them goes on before its wait is over.
    pub cycle: Option<Cycle>,
}

impl fmt::Display for WaitTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lock, waited) = (&self.lock, whole_millis(self.waited));
        write!(f, "lock {lock:?}: not free within {waited:?}")?;
        if let Some(position) = &self.position {
            write!(f, " ({position})")?;
        }
        if let Some(cycle) = &self.cycle {
            f.write_str("; owners of this process hold it")?;
            for other in cycle.locks().filter(|other| *other != lock) {
                write!(f, " and {other:?}")?;
            }
            return f.write_str(
                ", and wait for each other: take them together, with locks.all(), or in one order",
            );
        }
        if let Some(self_wait) = &self.self_wait {
            if let Some(holder) = &self.holder {
                write!(f, "; {holder}")?;
            }
            return write!(f, "; {self_wait}");
        }
        let Some(holder) = &self.holder else {
            return f.write_str("; wait longer, or find out who keeps it");
        };
        write!(f, "; {holder}")?;
        if holder.kept {
            return f.write_str("; it opens by itself then, or at once by a force-release");
        }
        if let Some(unrenewed_for) = holder.unrenewed_for {
            let (unrenewed_for, left) =
                (whole_millis(unrenewed_for), whole_millis(holder.remaining));
            return write!(
                f,
                "; its lease was not renewed for {unrenewed_for:?} and ends in {left:?}: its process may be \
                 dead or stopped, or renews nothing; wait until then, or look at the process"
            );
        }
        f.write_str(if holder.this_runtime {
            "; another task of this process may hold it: nested code re-enters only with the same owner, \
             so pass it on, or use owner.scope(); if no task has it, an acquire was given up while the \
             server was out of reach, and it ends by itself"
        } else {
            "; wait longer, or find out why the holder keeps it"
        })
    }
}

/// Without a source: the text has the cause.
impl std::error::Error for WaitTimeout {}

/// Where a call stood in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePosition {
    /// How many other runtimes stood before this one, as last heard; `None` while this one had the
    /// lock, or does not know.
    pub runtimes: Option<u64>,
    /// How many tasks of this runtime stood before the call.
    pub tasks: usize,
}

impl fmt::Display for QueuePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = match self.tasks {
            1 => "1 local task".to_owned(),
            tasks => format!("{tasks} local tasks"),
        };
        match self.runtimes {
            Some(0) if self.tasks == 0 => f.write_str("next in line"),
            Some(0) | None => write!(f, "{tasks} ahead"),
            Some(1) => write!(f, "1 other runtime and {tasks} ahead"),
            Some(others) => write!(f, "{others} other runtimes and {tasks} ahead"),
        }
    }
}

/// Who holds a lock, as seen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderInfo {
    /// The label of the holder's runtime.
    pub label: String,
    /// The turn of the holder's runtime; the id of its first lease.
    pub lease: AcquisitionId,
    /// The first fence of the turn.
    pub fence: Fence,
    /// How long the runtime has had the lock; in an outage, how long its present task has.
    pub held_for: Duration,
    /// How long the lease has left without renewal; of a kept one, until the lock opens.
    pub remaining: Duration,
    /// Whether the lease was given back, and the lock only stays closed for a while.
    pub kept: bool,
    /// Whether the holder is a lease of this very runtime.
    pub this_runtime: bool,
    /// For how long at least the lease was not renewed, if that is two thirds of its time or more: the
    /// process of the holder may be dead or stopped, or it does not renew (`renew(false)`). `None` also if
    /// this runtime has not waited for so long.
    pub unrenewed_for: Option<Duration>,
}

impl HolderInfo {
    /// Whether the holder does not wait for replicas any more, if it does so for `may_wait`: it has the
    /// lock for longer, or gave its lease back. What others were granted just now may be taken back, if
    /// too few replicas have it.
    pub(crate) fn is_acknowledged(&self, may_wait: Duration) -> bool {
        self.kept || self.held_for > may_wait
    }

    pub(crate) fn of_lease(lease: &HeldLease, label: String, now: Instant) -> Self {
        Self {
            label,
            lease: lease.id(),
            fence: lease.fence(),
            held_for: now.saturating_since(lease.since()),
            remaining: lease.remaining(),
            kept: false,
            this_runtime: true,
            unrenewed_for: None,
        }
    }

    /// Compares its end with what this runtime has heard of the lock before.
    pub(crate) fn heard(self, before: Option<HeardEnd>, now: Instant) -> Self {
        let before = before.filter(|_| !self.kept && !self.this_runtime);
        let heard = before.map(|heard| heard.hear(now, self.remaining));
        let unrenewed_for = heard.and_then(|heard| heard.unrenewed_for(now));
        // A holder before it may have had a lease with about the same end.
        let unrenewed_for = unrenewed_for.filter(|time| *time <= self.held_for);
        Self { unrenewed_for, ..self }
    }
}

impl fmt::Display for HolderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, lease, fence, this_runtime, .. } = self;
        let held_for = whole_millis(self.held_for);
        if self.kept {
            let left = whole_millis(self.remaining);
            write!(f, "kept closed for another {left:?} after a hold by {label} that began ")?;
            write!(f, "{held_for:?} ago (lease {lease}, fence {fence}")?;
        } else {
            write!(f, "held for {held_for:?} by {label} (lease {lease}, fence {fence}")?;
        }
        f.write_str(if *this_runtime { ", this very runtime)" } else { ")" })
    }
}

/// Without fractions of a millisecond, which are noise to a reader.
fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// How a call may have waited for its own process: a possibility, named by timeouts and a warning.
///
/// It is named if a lease of this process was held for the whole of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelfWait {
    /// A nested acquire: the call came without an owner, from the task that had acquired the lock.
    WithoutOwner,
    /// A nested acquire: the call came from the task that had acquired the lock, with another
    /// owner.
    OtherOwner,
    /// The lock was acquired in an owner's scope, and the call came from another task, outside of
    /// every scope: a spawned task does not inherit one.
    OutsideScope,
}

impl fmt::Display for SelfWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithoutOwner => {
                "the same task acquired the lock before, and this nested acquire has no owner; if the \
                 task waits for itself, use guard.reenter(), or give one owner to both with \
                 .owner(&owner) or owner.scope()"
            }
            Self::OtherOwner => {
                "the same task acquired the lock before, and this nested acquire has another owner; \
                 if the task waits for itself, give the owner of the first acquire to both"
            }
            Self::OutsideScope => {
                "the lock was acquired in an owner's scope, and this acquire is outside of it; if it \
                 works for the holder, note that a spawned task does not inherit the scope: spawn \
                 owner.scope(future), or acquire with .owner(&owner)"
            }
        })
    }
}

/// The server did not answer, or refused: an outage, or a server that is full, loads its data, was
/// made a replica or has too few of them; and not a taken lock.
///
/// Or this process did not reach the server by its own fault: it has no file descriptors, stood still, or cannot
/// have its certificates or credentials. The text says so.
///
/// If too few replicas acknowledged a grant that asked for them, the field
/// [`error`](Self::error) [is unacknowledged](StoreError::is_unacknowledged).
///
/// Whether the lock is free is unknown. What the call may have left is withdrawn or expires.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unavailable {
    /// The lock.
    pub lock: LockName,
    /// How long the call tried.
    pub waited: Duration,
    /// For how long no command of this runtime has been answered, for whatever lock, or none for this one. If
    /// [`answers_others`](Self::answers_others), for how long the commands for this lock have
    /// failed. It may have begun before the call.
    pub silent_for: Duration,
    /// Whether the server answers: it refused the commands for this lock, or answered others.
    pub answers_others: bool,
    /// How many commands failed in that time: of this runtime, for whatever lock. If
    /// [`answers_others`](Self::answers_others), for this lock.
    pub failed: u64,
    /// Why the last of them failed.
    pub error: StoreError,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, failed, error, .. } = self;
        let (silent_for, waited) = (whole_millis(self.silent_for), whole_millis(self.waited));
        write!(f, "lock {lock:?}: ")?;
        match (self.answers_others, error.is_answer(), failed) {
            _ if error.is_ours() && silent_for.is_zero() => {
                write!(f, "this process did not reach the server")
            }
            _ if error.is_ours() => {
                write!(f, "this process has not reached the server for {silent_for:?}")
            }
            (true, true, 0 | 1) => {
                write!(f, "the server answers, and the command for this lock failed")
            }
            (true, true, _) => write!(
                f,
                "the server answers, and {failed} commands for this lock failed in {silent_for:?}"
            ),
            (true, false, 0 | 1) => {
                write!(f, "its command was not answered, while others of this process were")
            }
            (true, false, _) => write!(
                f,
                "{failed} commands for it were not answered in {silent_for:?}, while others of this process were"
            ),
            (false, ..) if silent_for.is_zero() => write!(f, "the server did not answer"),
            (false, ..) => write!(f, "the server has not answered for {silent_for:?}"),
        }?;
        if !self.answers_others && *failed > 1 {
            write!(f, ", and {failed} commands of this process failed")?;
        }
        if waited.is_zero() {
            write!(f, "; gave up at once")?;
        } else {
            write!(f, "; gave up after {waited:?}")?;
        }
        write!(f, "; whether the lock is free is unknown: {error}")
    }
}

/// Without a source: the text has the cause.
impl std::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use leasehold_core::RuntimeId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_position_reads_as_a_sentence_would() {
        for (runtimes, tasks, text) in [
            (Some(0), 0, "next in line"),
            (Some(0), 1, "1 local task ahead"),
            (None, 0, "0 local tasks ahead"),
            (Some(1), 0, "1 other runtime and 0 local tasks ahead"),
            (Some(2), 3, "2 other runtimes and 3 local tasks ahead"),
        ] {
            assert_eq!(QueuePosition { runtimes, tasks }.to_string(), text);
        }
    }

    #[test]
    fn a_holder_is_acknowledged_once_it_has_waited_or_had_a_lease() {
        let may_wait = Duration::from_millis(200);
        let is_acknowledged = |held_for, kept| {
            let holder = HolderInfo {
                label: "billing".into(),
                lease: AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1),
                fence: Fence::try_from(7_u64).unwrap(),
                held_for: Duration::from_millis(held_for),
                remaining: may_wait,
                kept,
                this_runtime: false,
                unrenewed_for: None,
            };
            holder.is_acknowledged(may_wait)
        };
        assert!(!is_acknowledged(50, false));
        assert!(is_acknowledged(201, false));
        assert!(is_acknowledged(50, true), "it stays closed behind a lease");
    }
}
