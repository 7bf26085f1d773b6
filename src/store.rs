//! Where leases are kept: the contract of a store, and what a store of your own needs.
//!
//! [`MemoryStore`] keeps leases in this process, [`RedisStore`](crate::redis::RedisStore) on a
//! server. Give a store to [`LockRuntimeBuilder::on_store`](crate::LockRuntimeBuilder::on_store).

pub use leasehold_core::{
    MemoryStore, Terms,
    lease::{Grant, Holds, HoldsError},
    store::{
        Acquire, AcquireAnswer, Ask, Command, FencePolicy, FenceSettings, ForceRelease,
        ForceReleaseAnswer, Granted, Heartbeat, Heartbeats, Hold, HoldAnswer, Inspect, Inspection,
        KeyScheme, LeaseRecord, Listener, LockStore, Next, Place, Push, Release, ReleaseAnswer,
        RenewAnswer, Renewal, Renewals, Reply, Request, Scan, ScanCursor, ScanPage, StoreFuture,
        Waiter, WaiterRecord, Withdraw, WithdrawAnswer,
    },
};
