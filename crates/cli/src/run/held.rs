use std::time::Duration;

use leasehold::{
    AllGuard, LeaseEnd, LockName, LockRuntime, LossReason,
    error::{LeaseLost, ReleaseError},
    once::{Begun, Duplicate, OnceGuard, Progress},
    store::Inspection,
    time::{Clock, SystemClock},
};

use super::surrounding::Named;
use crate::{
    args::RunArgs,
    durations::{CONFIRMATION_LOOK, LONGEST_CLAIM},
    ending::{Cause, ExitCodes, Failure, tell},
    words::short,
};

/// The lease of a run.
#[derive(Debug)]
pub(super) enum Held {
    Locks(AllGuard),
    Once(OnceGuard),
}

/// The answer to a call for it.
#[derive(Debug)]
pub(super) enum Asked {
    Held(Held),
    /// The work of a `--once` runs elsewhere, or is done.
    Duplicate(Duplicate),
}

impl Held {
    /// Asks for the locks.
    pub(super) async fn ask(
        locks: &LockRuntime,
        args: &RunArgs,
        names: &[LockName],
    ) -> Result<Asked, Failure> {
        if let Some((window, name)) = args.once.zip(names.first()) {
            let once = locks.once(name).map_err(Failure::usage)?.window(window);
            return Ok(match once.begin().await? {
                Begun::First(guard) => Asked::Held(Self::Once(guard)),
                Begun::Duplicate(duplicate) => Asked::Duplicate(duplicate),
            });
        }
        let mut acquire = locks.all(names).map_err(Failure::usage)?.acquire();
        if let Some(time) = args.min_hold {
            acquire = acquire.min_hold(time);
        }
        if args.tries {
            return match acquire.try_acquire().await? {
                Some(guard) => Ok(Asked::Held(Self::Locks(guard))),
                None => Err(taken(locks, names).await),
            };
        }
        let acquire = match args.wait {
            _ if args.wait_forever => acquire.wait_forever(),
            Some(time) => acquire.wait(time),
            None => acquire,
        };
        Ok(Asked::Held(Self::Locks(acquire.await?)))
    }

    /// Resolves when a lease ends, and says which one and why.
    pub(super) fn lost(&self) -> impl Future<Output = String> + use<> {
        let lost = match self {
            Self::Locks(guard) => Ok(guard.lost()),
            Self::Once(guard) => Err((guard.name().clone(), guard.fence(), guard.lost())),
        };
        async move {
            match lost {
                Ok(lost) => lost.await.to_string(),
                Err((name, fence, lost)) => {
                    let reason = match lost.await {
                        LeaseEnd::Lost(reason) => reason,
                        LeaseEnd::Released => LossReason::Gone,
                    };
                    format!("lock {name:?}: the lease (fence {fence}) was lost: {reason}")
                }
            }
        }
    }

    /// Waits for the first renewal of each lease that was waited for: until then it lives for a claim
    /// window, and not for its ttl. Returns whether all are held.
    pub(super) async fn confirmed(&self, ttl: Duration) -> bool {
        // A part of a ttl is spent on the way, and by the margin of the belief.
        let longest = LONGEST_CLAIM.min(ttl / 4 * 3);
        let mut young: Vec<_> = match self {
            Self::Locks(guard) => guard.iter().cloned().collect(),
            Self::Once(guard) => vec![guard.lease()],
        };
        loop {
            young.retain(|lease| lease.remaining() <= longest);
            if young.is_empty() || !self.is_held() {
                return self.is_held();
            }
            SystemClock.sleep_until(SystemClock.now() + CONFIRMATION_LOOK).await;
        }
    }

    /// Says which lease is near its end.
    pub(super) fn near_end(&self) -> String {
        let (name, fence) = match self {
            Self::Locks(guard) => match guard.iter().min_by_key(|lease| lease.remaining()) {
                Some(lease) => (lease.name(), lease.fence()),
                None => return "the lease was about to be lost".into(),
            },
            Self::Once(guard) => (guard.name(), guard.fence()),
        };
        format!(
            "lock {name:?}: the lease (fence {fence}) was about to be lost: no renewal got through in time"
        )
    }

    pub(super) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long the lease is held without another renewal.
    pub(super) fn remaining(&self) -> Duration {
        match self {
            Self::Locks(guard) => guard.remaining(),
            Self::Once(guard) => guard.remaining(),
        }
    }

    /// The leases of the locks.
    pub(super) fn leases(&self) -> Vec<Named> {
        match self {
            Self::Locks(guard) => {
                guard.stamps().map(|(name, stamp)| (name.clone(), stamp)).collect()
            }
            Self::Once(guard) => vec![(guard.name().clone(), guard.stamp())],
        }
    }

    /// Gives the locks back, after a command that has succeeded or not.
    pub(super) async fn end(self, succeeded: bool) -> Result<(), Failure> {
        match self {
            Self::Locks(guard) => told(guard.release().await.map(drop)),
            Self::Once(guard) if succeeded => match guard.succeed().await {
                Err(ReleaseError::Lost(lost)) => Err(too_late(&lost)),
                Err(error) => {
                    tell(error);
                    Ok(())
                }
                Ok(()) => Ok(()),
            },
            Self::Once(guard) => told(guard.fail().await),
        }
    }
}

/// A release that the server has not confirmed is no failure of the command.
fn told(released: Result<(), ReleaseError>) -> Result<(), Failure> {
    match released {
        Err(ReleaseError::Lost(lost)) => Err(too_late(&lost)),
        Err(error) => {
            tell(error);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn too_late(lost: &LeaseLost) -> Failure {
    let text = format!(
        "{lost}; the command had ended, but perhaps too late: rely on the fence check of your storage"
    );
    Failure::new(Cause::Lost, text)
}

/// Who has one of the locks that were tried.
async fn taken(locks: &LockRuntime, names: &[LockName]) -> Failure {
    for name in names {
        if let Ok(Inspection::Held(lease)) = locks.inspect(name).await {
            let (label, time) = (&lease.label, short(lease.held_for));
            let text = format!(
                "lock {name:?} is not free: {label} has held it for {time} (fence {}); try again later, or wait with --wait",
                lease.fence
            );
            return Failure::new(Cause::Busy, text);
        }
    }
    let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    let text = format!("lock {} was not free: try again, or wait with --wait", names.join(", "));
    Failure::new(Cause::Busy, text)
}

/// Says why the work of a `--once` is not done here. Returns the exit code.
pub(super) fn duplicate(duplicate: &Duplicate, codes: ExitCodes) -> u8 {
    tell(duplicate);
    match duplicate.progress {
        Progress::Running => codes.busy,
        Progress::Done => codes.done,
    }
}
