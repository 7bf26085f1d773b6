use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use leasehold_core::{FenceSettings, Instant, LockName, LockStore, seam::Part};

/// Something that a subject does, on its way.
pub type Task<'a, T = ()> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a case needs beyond a store that answers; a subject that lacks it leaves the case out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Time can be made to pass.
    Time,
    /// All data can be lost while the store runs on.
    DataLoss,
    /// One part of what is known of a name can be lost alone.
    PartLoss,
    /// What keeps the data can be started anew, empty.
    Restart,
    /// A fence counter can be brought to its end.
    Exhaustion,
    /// The data can be looked at from outside.
    Snapshot,
    /// Acknowledgements of replicas can be asked for.
    Replication,
    /// At least one replica has what is written.
    Replicas,
    /// Processes queue in one line, and a release passes the lock to the first of them.
    Line,
    /// Tokens can come from plain counters.
    PlainCounter,
    /// Readers can share a lease.
    Readers,
}

impl Capability {
    /// Those of a subject of its own, without replicas.
    pub const OF_ONE: [Self; 10] = [
        Self::Time,
        Self::DataLoss,
        Self::PartLoss,
        Self::Restart,
        Self::Exhaustion,
        Self::Snapshot,
        Self::Replication,
        Self::Line,
        Self::PlainCounter,
        Self::Readers,
    ];

    /// Those of a subject whose servers others use too.
    pub const OF_SHARED: [Self; 9] = [
        Self::Time,
        Self::DataLoss,
        Self::PartLoss,
        Self::Exhaustion,
        Self::Snapshot,
        Self::Replication,
        Self::Line,
        Self::PlainCounter,
        Self::Readers,
    ];

    /// The same of a subject with replicas.
    pub const OF_REPLICATED: [Self; 10] = [
        Self::Time,
        Self::DataLoss,
        Self::PartLoss,
        Self::Exhaustion,
        Self::Snapshot,
        Self::Replicas,
        Self::Replication,
        Self::Line,
        Self::PlainCounter,
        Self::Readers,
    ];

    /// Those of a subject whose servers decide one by one.
    pub const OF_QUORUM: [Self; 5] =
        [Self::Time, Self::DataLoss, Self::PartLoss, Self::Exhaustion, Self::Snapshot];
}

/// What a subject keeps, piece by piece: its content, and how long it has left.
pub type Snapshot = BTreeMap<String, (String, Duration)>;

/// A store, and what can be done to it behind its back.
///
/// Methods of a capability that the subject lacks are not called.
pub trait StoreUnderTest: fmt::Debug + Send + Sync {
    /// Starts an empty subject whose tokens come from `fencing`.
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>>
    where
        Self: Sized;

    /// The capabilities that the subject has.
    fn capabilities(&self) -> &'static [Capability];

    /// The store.
    fn store(&self) -> Arc<dyn LockStore>;

    /// How many servers tell a runtime that it listens to them.
    fn listened_to(&self) -> usize {
        1
    }

    /// A deadline that a command meets unless something is broken.
    fn deadline(&self) -> Instant;

    /// By how much a remaining time may fall short of the exact one; zero under virtual time.
    fn slack(&self) -> Duration;

    /// Lets time pass for everything that the subject keeps.
    fn pass(&self, time: Duration) -> Task<'_>;

    /// The time by which the subject makes tokens, in microseconds; it does not move when time
    /// is made to pass for a real server.
    fn server_micros(&self) -> Task<'_, u64>;

    /// Loses all data.
    fn lose_all(&self) -> Task<'_>;

    /// Loses one part of what is known of a name, while the others stay.
    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a>;

    /// Starts what keeps the data anew, empty.
    fn restart(&self) -> Task<'_>;

    /// Brings the counter of a free name so far that the next grant gets the last token.
    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a>;

    /// Everything that the subject keeps.
    fn snapshot(&self) -> Task<'_, Snapshot>;

    /// What would stay for ever if nobody came back.
    fn left_behind(&self) -> Task<'_, Vec<String>>;
}
