use std::{collections::BTreeMap, time::Duration};

use crate::{
    lease::LossReason,
    store::StoreError,
    types::{AcquisitionId, FenceToken, LockName},
};

/// What one command is about. A batch about several locks names none of them.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The kind of the command, as the log shows it.
    pub command: &'static str,
    /// The lock.
    pub lock: Option<&'a LockName>,
    /// The lease, where there is one already.
    pub lease: Option<AcquisitionId>,
    /// The fence of that lease.
    pub fence: Option<FenceToken>,
}

impl Subject<'_> {
    /// The name that is inspected to find out whether the server answers.
    pub const PROBE: &'static str = "leasehold:probe";

    /// Whether the command only asks whether the server answers.
    pub fn is_probe(&self) -> bool {
        self.lock.is_some_and(|lock| lock.as_str() == Self::PROBE)
    }
}

/// A lease that was lost.
#[derive(Debug, Clone, Copy)]
pub struct LostLease<'a> {
    /// The lock.
    pub lock: &'a LockName,
    /// The lease.
    pub lease: AcquisitionId,
    /// Its fence.
    pub fence: FenceToken,
    /// Why it was lost.
    pub reason: LossReason,
    /// For how long it had been held.
    pub held_for: Duration,
}

/// One line of the log.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// The first failed command of a row.
    FirstFailure(Subject<'a>, &'a StoreError),
    /// What failed since the last line, by kind, and how many leases were lost since the first failure.
    Failing {
        /// How long the server has been out of reach; `None` while it answers.
        unreachable_for: Option<Duration>,
        failed: BTreeMap<&'static str, u64>,
        at_stake: AtStake,
        lost: u64,
        last_error: Option<StoreError>,
    },
    /// Commands fail no longer.
    Recovered {
        /// How long the server was out of reach; zero where it only refused.
        unreachable_for: Duration,
        failed: u64,
        lost: u64,
    },
    /// A lease was lost.
    Lost(LostLease<'a>),
    /// So many more were lost, without a line of their own.
    MoreLost(u64),
    /// The fence counter of a lock had lost data.
    Regressed(&'a LockName, FenceToken),
    /// Those of so many more locks, without a line of their own.
    MoreRegressed(u64),
}

/// What depends on the server now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtStake {
    /// Leases that are held: each is lost at the end of its ttl if it is not renewed.
    pub leases: usize,
    /// Acquires that wait.
    pub waiting: usize,
}

impl Line<'_> {
    pub(super) fn write(&self) {
        match self {
            Self::FirstFailure(Subject { command, lock, lease, fence }, error) => {
                let what = if error.is_answer() {
                    "the server refused a command"
                } else {
                    "a command was not answered, or could not be sent"
                };
                tracing::warn!(
                    command,
                    lock = lock.map(tracing::field::display),
                    lease = lease.map(tracing::field::display),
                    fence = fence.map(tracing::field::display),
                    %error,
                    "{what}"
                );
            }
            Self::Failing { unreachable_for, failed, at_stake, lost, last_error } => {
                let AtStake { leases, waiting } = at_stake;
                let what = if unreachable_for.is_none() {
                    "commands fail; the server answers others"
                } else {
                    "the server does not answer"
                };
                tracing::warn!(
                    unreachable_for =
                        unreachable_for.map(|time| tracing::field::debug(tenths(time))),
                    failed = numbers(failed),
                    leases_at_risk = leases,
                    acquires_waiting = waiting,
                    leases_lost = lost,
                    error = last_error.as_ref().map(tracing::field::display),
                    "{what}"
                );
            }
            Self::Recovered { unreachable_for, failed, lost } => {
                let what = if unreachable_for.is_zero() {
                    "commands no longer fail"
                } else {
                    "the server answers again"
                };
                tracing::info!(
                    unreachable_for = ?tenths(*unreachable_for),
                    failed,
                    leases_lost = lost,
                    "{what}"
                );
            }
            Self::Lost(LostLease { lock, lease, fence, reason, held_for }) => tracing::warn!(
                %lock, %lease, %fence, held_for = ?tenths(*held_for),
                "lease lost: {reason}"
            ),
            Self::MoreLost(leases) => tracing::warn!(leases, "more leases lost"),
            Self::Regressed(lock, fence) => tracing::error!(
                %lock, %fence,
                "the server's fence counter was behind what this process had seen: the server lost \
                 data; the new fence is above both"
            ),
            Self::MoreRegressed(locks) => {
                tracing::error!(locks, "more fence counters were behind: the server lost data");
            }
        }
    }
}

/// Numbers of commands, as in `1 acquire, 2 renew`.
pub(super) fn numbers(failed: &BTreeMap<&str, u64>) -> String {
    let number = |(kind, count): (&&str, &u64)| format!("{count} {kind}");
    failed.iter().map(number).collect::<Vec<_>>().join(", ")
}

/// A time in tenths of a second, which is exact enough for a reader.
fn tenths(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis() / 100 * 100).unwrap_or(u64::MAX))
}
