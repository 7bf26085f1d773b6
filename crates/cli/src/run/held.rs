use std::time::Duration;

use leasehold::{
    AllGuard, Lease, LeaseEnd, LockName, LockRuntime, LossReason,
    error::ReleaseError,
    once::{Begun, OnceGuard, Progress},
    store::Inspection,
    time::{Clock, SystemClock},
};

use super::{surrounding::Named, waiting};
use crate::{
    args::RunArgs,
    durations::{LEASE_LOOK, LONGEST_CLAIM},
    ending::{Cause, CliError},
    output::tell,
};

/// A lease that expired, without what may have caused it.
const UNCONFIRMED: &str = "no renewal was confirmed in time";

/// What only a `--once` has to heed of a release that is not confirmed.
const AFTER_ONCE: &str = ", and after a once, let the storage refuse a second write";

/// The leases of a run.
#[derive(Debug)]
pub(super) struct Held {
    locks: LockRuntime,
    leases: Vec<Lease>,
    guard: HeldGuard,
}

#[derive(Debug)]
enum HeldGuard {
    Locks(AllGuard),
    Once(OnceGuard),
}

impl Held {
    /// Asks for the locks.
    pub(super) async fn ask(
        locks: &LockRuntime,
        args: &RunArgs,
        names: &[LockName],
    ) -> Result<Self, CliError> {
        if let Some((window, name)) = args.once.zip(names.first()) {
            let once = locks.once(name).map_err(CliError::usage)?.window(window);
            return match once.begin().await? {
                Begun::First(guard) => {
                    let (locks, leases) = (locks.clone(), vec![guard.lease()]);
                    Ok(Self { locks, leases, guard: HeldGuard::Once(guard) })
                }
                Begun::Duplicate(duplicate) => {
                    let cause = match duplicate.progress {
                        Progress::Running => Cause::Busy,
                        Progress::Done => Cause::Done,
                    };
                    Err(CliError::new(cause, duplicate))
                }
            };
        }
        let mut acquire = locks.all(names).map_err(CliError::usage)?.acquire();
        if let Some(time) = args.min_hold {
            acquire = acquire.min_hold(time);
        }
        let guard = if args.tries {
            match acquire.try_acquire().await? {
                Some(guard) => guard,
                None => return Err(taken(locks, names).await),
            }
        } else if args.wait_forever {
            acquire.wait_forever().await?
        } else if let Some(time) = args.wait {
            acquire.wait(time).await?
        } else {
            acquire.await?
        };
        let (locks, leases) = (locks.clone(), guard.iter().cloned().collect());
        Ok(Self { locks, leases, guard: HeldGuard::Locks(guard) })
    }

    /// Resolves when a lease has ended, and says which one and why.
    pub(super) async fn lost(&self) -> String {
        let lost = match &self.guard {
            HeldGuard::Locks(guard) => guard.lost().await.to_string(),
            HeldGuard::Once(guard) => {
                let reason = match guard.lost().await {
                    LeaseEnd::Lost(reason) => reason,
                    LeaseEnd::Released => LossReason::Gone,
                };
                let (name, fence) = (guard.name(), guard.fence());
                format!("lock {name:?}: the lease (fence {fence}) was lost: {reason}")
            }
        };
        let (failure, expired) = (self.failure(), LossReason::Expired.to_string());
        // What fails now is no cause of another loss. Where the cause is known, there is nothing to guess.
        if failure.is_empty() || !lost.contains(&expired) {
            return lost;
        }
        lost.replace(&expired, UNCONFIRMED) + &failure
    }

    /// Waits for the first renewal of each lease that was waited for: until then it lives for a claim
    /// window, and not for its ttl. Returns whether all are held.
    pub(super) async fn confirmed(&self, ttl: Duration) -> bool {
        // A part of a ttl is spent on the way, and by the margin of the belief.
        let longest = LONGEST_CLAIM.min(ttl / 4 * 3);
        let mut young: Vec<_> = self.leases.iter().collect();
        loop {
            young.retain(|lease| lease.remaining() <= longest);
            if young.is_empty() || !self.is_held() {
                return self.is_held();
            }
            SystemClock.sleep_until(SystemClock.now() + LEASE_LOOK).await;
        }
    }

    /// Says which lease is near its end.
    pub(super) fn near_end(&self) -> String {
        let Some(lease) = self.leases.iter().min_by_key(|lease| lease.remaining()) else {
            return "the lease was about to be lost".into();
        };
        format!(
            "lock {:?}: the lease (fence {}) was about to be lost: no renewal got through in time{}",
            lease.name(),
            lease.fence(),
            self.failure()
        )
    }

    /// Why commands fail, if they do; or else why the lease that ends first was not renewed.
    fn failure(&self) -> String {
        let first = self.leases.iter().min_by_key(|lease| lease.remaining());
        // Other nodes of a Cluster may be well: then nothing else fails.
        let error = self.locks.health().error.or_else(|| first.and_then(Lease::renewal_error));
        error.map(|error| format!(": {error}")).unwrap_or_default()
    }

    pub(super) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long the leases are held without another renewal.
    pub(super) fn remaining(&self) -> Duration {
        self.leases.iter().map(Lease::remaining).min().unwrap_or_default()
    }

    /// The leases of the locks.
    pub(super) fn leases(&self) -> Vec<Named> {
        self.leases.iter().map(|lease| (lease.name().clone(), lease.stamp())).collect()
    }

    /// Gives the locks back, after a command that has succeeded or not.
    pub(super) async fn end(self, succeeded: bool) -> Result<(), CliError> {
        let is_once = matches!(self.guard, HeldGuard::Once(_));
        let released = match self.guard {
            HeldGuard::Locks(guard) => guard.release().await.map(drop),
            HeldGuard::Once(guard) if succeeded => guard.succeed().await,
            HeldGuard::Once(guard) => guard.fail().await,
        };
        match released {
            Ok(()) => Ok(()),
            Err(ReleaseError::Lost(lost)) => Err(CliError::new(
                Cause::Lost,
                format!(
                    "{lost}; the command had ended, but perhaps too late: rely on the fence check of your storage"
                ),
            )),
            // That the server has not confirmed it is no failure of the command.
            Err(error) => {
                let text = error.to_string();
                let text = if is_once { text } else { text.replace(AFTER_ONCE, "") };
                tell(&text);
                Ok(())
            }
        }
    }
}

/// Who has one of the locks that were tried.
async fn taken(locks: &LockRuntime, names: &[LockName]) -> CliError {
    for name in names {
        if let Ok(Inspection::Held(lease)) = locks.inspect(name).await {
            let state = waiting::taken(name, &lease);
            let text = format!("{state}; try again later, or wait with --wait");
            return CliError::new(Cause::Busy, text);
        }
    }
    let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    let text = format!("lock {} was not free: try again, or wait with --wait", names.join(", "));
    CliError::new(Cause::Busy, text)
}
