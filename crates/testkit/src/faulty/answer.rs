use leasehold_core::{
    StoreError,
    store::{
        AcquireAnswer, ForceReleaseAnswer, HoldAnswer, Inspection, ReleaseAnswer, RenewAnswer,
        ScanPage, WithdrawAnswer,
    },
};

/// The answer to a [`Command`](super::Command), of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer to an acquire.
    Acquire(AcquireAnswer),
    /// The answers to a batch of waiters.
    Heartbeat(Vec<Result<AcquireAnswer, StoreError>>),
    /// The answer to a hold.
    Hold(HoldAnswer),
    /// The answer to a release.
    Release(ReleaseAnswer),
    /// The answers to a batch of renewals.
    Renew(Vec<Result<RenewAnswer, StoreError>>),
    /// The answer to a withdraw.
    Withdraw(WithdrawAnswer),
    /// What a look at a lock showed.
    Inspect(Inspection),
    /// What a scan has named.
    Scan(ScanPage),
    /// The answer to a force-release.
    ForceRelease(ForceReleaseAnswer),
}
