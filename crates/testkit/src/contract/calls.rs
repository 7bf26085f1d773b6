use std::{num::NonZeroU32, sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, LockStore, Mode, NamePattern, Replication,
    RuntimeLabel, StoreError, Ttl,
    lease::HoldUpdate,
    store::{
        Acquire, AcquireAnswer, Ask, ForceRelease, ForceReleaseAnswer, Heartbeat, Heartbeats, Hold,
        HoldAnswer, Inspect, Inspection, Next, Release, ReleaseAnswer, RenewAnswer, Renewal,
        Renewals, Scan, ScanCursor, ScanPage, Waiter, Withdraw,
    },
};

/// Short words for the commands of one name, with one deadline.
///
/// # Errors
///
/// Every method returns the store's.
///
/// # Cancel safety
///
/// Every method is as the store's: dropping the future does not take the command back.
#[derive(Debug, Clone)]
pub struct Calls {
    store: Arc<dyn LockStore>,
    name: LockName,
    deadline: Instant,
    mode: Mode,
    keeps: bool,
    acks: Replication,
}

#[expect(clippy::missing_errors_doc, reason = "the type says it for all of them")]
impl Calls {
    /// The label with which these calls acquire.
    pub const LABEL: &'static str = "host/1/contract-suite";

    /// Calls to a store about a name, all due at `deadline`.
    pub fn new(store: Arc<dyn LockStore>, name: &LockName, deadline: Instant) -> Self {
        let (mode, keeps, acks) = (Mode::Write, false, Replication::NONE);
        Self { store, name: name.clone(), deadline, mode, keeps, acks }
    }

    /// The same calls of readers, or of writers; by default, of writers.
    #[must_use]
    pub fn to(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The same calls of runtimes that may keep the lock idle, or not; by default, not.
    #[must_use]
    pub fn keeping(self, keeps: bool) -> Self {
        Self { keeps, ..self }
    }

    /// The same calls, whose grants and extensions need acknowledgements; by default, none.
    #[must_use]
    pub fn needing(self, acks: Replication) -> Self {
        Self { acks, ..self }
    }

    /// The same calls about another name.
    ///
    /// # Panics
    ///
    /// Panics if it is not one.
    #[must_use]
    pub fn about(&self, name: &str) -> Self {
        Self { name: LockName::new(name).expect("the test uses a name"), ..self.clone() }
    }

    /// The name that the calls are about.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// Acquires, without waiting.
    pub async fn acquire(
        &self,
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<Fence>,
    ) -> Result<AcquireAnswer, StoreError> {
        self.ask(id, ttl, watermark, None).await
    }

    /// Acquires, and queues if the lock is taken.
    pub async fn wait(
        &self,
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<Fence>,
        heartbeat: Heartbeat,
    ) -> Result<AcquireAnswer, StoreError> {
        self.ask(id, ttl, watermark, Some(heartbeat)).await
    }

    async fn ask(
        &self,
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<Fence>,
        wait: Option<Heartbeat>,
    ) -> Result<AcquireAnswer, StoreError> {
        let Self { ref name, deadline, mode, keeps, acks, .. } = *self;
        let (name, label) = (name.clone(), RuntimeLabel::new(Self::LABEL));
        let command = Acquire { name, id, mode, ttl, watermark, label, keeps, wait, acks };
        self.store.ask(command, deadline).await
    }

    /// One waiter for the name.
    pub fn waiter(
        &self,
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<Fence>,
        heartbeat: Heartbeat,
    ) -> Waiter {
        let Self { ref name, mode, keeps, .. } = *self;
        Waiter { name: name.clone(), id, mode, ttl, watermark, keeps, heartbeat }
    }

    /// Tells the signs of life of a batch, of whatever names.
    pub async fn heartbeat(
        &self,
        batch: &[Waiter],
    ) -> Result<Vec<Result<AcquireAnswer, StoreError>>, StoreError> {
        let (batch, label) = (batch.to_vec(), RuntimeLabel::new(Self::LABEL));
        self.store.ask(Heartbeats { batch, label }, self.deadline).await
    }

    /// Tells a number of holds with the number of the change, and extends.
    ///
    /// # Panics
    ///
    /// Panics if the number of holds is 0.
    pub async fn hold(
        &self,
        id: AcquisitionId,
        fence: Fence,
        (count, number): (u32, u64),
        ttl: Ttl,
    ) -> Result<HoldAnswer, StoreError> {
        let count = NonZeroU32::new(count).expect("a hold counts one or more");
        let (name, acks) = (self.name.clone(), self.acks);
        let update = HoldUpdate { count, number };
        self.store.ask(Hold { name, id, fence, update, ttl, acks }, self.deadline).await
    }

    /// Releases, or keeps the lock closed for a while.
    pub async fn release(
        &self,
        id: AcquisitionId,
        fence: Fence,
        keep: Option<Duration>,
    ) -> Result<ReleaseAnswer, StoreError> {
        let name = self.name.clone();
        self.store.ask(Release { name, id, fence, keep, next: None }, self.deadline).await
    }

    /// Releases, and queues the next acquisition of the waiter's runtime; its name is not looked
    /// at.
    pub async fn release_and_queue(
        &self,
        id: AcquisitionId,
        fence: Fence,
        keep: Option<Duration>,
        next: &Waiter,
    ) -> Result<ReleaseAnswer, StoreError> {
        let Waiter { id: next_id, mode, ttl, watermark, keeps, heartbeat, .. } = *next;
        let (name, label) = (self.name.clone(), RuntimeLabel::new(Self::LABEL));
        let next = Some(Next { id: next_id, mode, ttl, watermark, label, keeps, heartbeat });
        self.store.ask(Release { name, id, fence, keep, next }, self.deadline).await
    }

    /// One renewal of the name.
    pub fn renewal(&self, id: AcquisitionId, fence: Fence, ttl: Ttl) -> Renewal {
        Renewal { name: self.name.clone(), id, fence, ttl, acks: self.acks }
    }

    /// Renews a batch, of whatever names; a failure of one is a failure of all.
    pub async fn renew(&self, batch: &[Renewal]) -> Result<Vec<RenewAnswer>, StoreError> {
        let renewals = Renewals { batch: batch.to_vec() };
        self.store.ask(renewals, self.deadline).await?.into_iter().collect()
    }

    /// Withdraws; whether that ended a grant.
    pub async fn withdraw(&self, id: AcquisitionId) -> Result<bool, StoreError> {
        let name = self.name.clone();
        Ok(self.store.ask(Withdraw { name, id }, self.deadline).await?.ended_grant)
    }

    /// Looks at some locks at once.
    pub async fn inspect_all(
        &self,
        names: &[LockName],
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        self.store.ask(Inspect { names: names.to_vec() }, self.deadline).await
    }

    /// Goes one step through the locks whose names match.
    pub async fn scan(
        &self,
        pattern: &NamePattern,
        cursor: &ScanCursor,
    ) -> Result<ScanPage, StoreError> {
        let scan = Scan { pattern: pattern.clone(), cursor: cursor.clone() };
        self.store.ask(scan, self.deadline).await
    }

    /// Looks at the lock.
    pub async fn inspect(&self) -> Result<Inspection, StoreError> {
        self.store.inspect(&self.name, self.deadline).await
    }

    /// Ends a lease that was inspected.
    pub async fn force_release(
        &self,
        id: AcquisitionId,
        fence: Fence,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        let name = self.name.clone();
        self.store.ask(ForceRelease { name, id, fence }, self.deadline).await
    }
}
