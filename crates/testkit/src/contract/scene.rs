use std::time::Duration;

use leasehold_core::{
    AcquisitionId, Fence, LockName, Ttl,
    store::{
        AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Inspection, LeaseRecord,
        ReleaseAnswer, RenewAnswer, Renewal,
    },
};

use super::{
    calls::Calls,
    subject::{Capability, Snapshot, StoreUnderTest},
    words::ttl,
};
use crate::Patience;

/// A subject, and short words for what a case does to one name of it.
///
/// Every method panics when the store fails; what a case expects to fail it does through
/// [`calls`](Scene::calls).
#[derive(Debug)]
pub struct Scene {
    subject: Box<dyn StoreUnderTest>,
    name: LockName,
}

#[expect(clippy::missing_panics_doc, reason = "the type says it for all of them")]
impl Scene {
    /// The ttl of a scene's leases.
    pub const TTL: Duration = Duration::from_secs(60);

    /// How long a lock may be free before the next one has it, where those who wait come by themselves.
    const PASSED_ON: Duration = Duration::from_secs(5);

    /// A scene with a subject.
    pub fn new(subject: Box<dyn StoreUnderTest>) -> Self {
        Self { subject, name: LockName::new("orders/42").expect("a plain name") }
    }

    /// What the scene plays on.
    pub fn subject(&self) -> &dyn StoreUnderTest {
        &*self.subject
    }

    /// The name that it is about.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The commands themselves, which may fail.
    pub fn calls(&self) -> Calls {
        Calls::new(self.subject.store(), &self.name, self.subject.deadline())
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        self.subject.pass(time).await;
    }

    /// Lets time pass until `end` is near: just short of it under virtual time, else as near as
    /// the subject's slack allows. [`pass_over`](Self::pass_over) does the rest.
    pub async fn pass_until_just_before(&self, end: Duration) {
        let short_of = self.subject.slack() + Duration::from_millis(1);
        self.pass(end.saturating_sub(short_of)).await;
    }

    /// Lets pass what [`pass_until_just_before`](Self::pass_until_just_before) left.
    pub async fn pass_over(&self) {
        self.pass(self.subject.slack() + Duration::from_millis(1)).await;
    }

    /// Acquires for 60 s.
    pub async fn acquire(&self, id: AcquisitionId) -> AcquireAnswer {
        self.calls().acquire(id, ttl(60), None).await.expect("acquire")
    }

    /// Acquires for 60 s and expects a grant.
    pub async fn granted(&self, id: AcquisitionId) -> Granted {
        self.granted_seeing(id, None).await
    }

    /// Acquires for 60 s with a watermark and expects a grant.
    pub async fn granted_seeing(&self, id: AcquisitionId, watermark: Option<Fence>) -> Granted {
        match self.calls().acquire(id, ttl(60), watermark).await {
            Ok(AcquireAnswer::Granted(granted)) => granted,
            other => panic!("{id} expected a grant and got {other:?}"),
        }
    }

    /// Acquires and expects that somebody else holds the lock, for how long.
    pub async fn busy(&self, id: AcquisitionId) -> Duration {
        match self.acquire(id).await {
            AcquireAnswer::Busy { remaining, .. } => remaining,
            other => panic!("{id} expected to find the lock busy and got {other:?}"),
        }
    }

    /// Tells a number of holds, and extends to 60 s.
    pub async fn hold(&self, id: AcquisitionId, fence: Fence, holds: (u32, u64)) -> HoldAnswer {
        self.hold_for(id, fence, holds, ttl(60)).await
    }

    /// Tells a number of holds with the number of the change, and extends.
    pub async fn hold_for(
        &self,
        id: AcquisitionId,
        fence: Fence,
        holds: (u32, u64),
        ttl: Ttl,
    ) -> HoldAnswer {
        self.calls().hold(id, fence, holds, ttl).await.expect("hold")
    }

    /// Releases.
    pub async fn release(&self, id: AcquisitionId, fence: Fence) -> ReleaseAnswer {
        self.calls().release(id, fence, None).await.expect("release")
    }

    /// Releases, and keeps the lock closed for a while.
    pub async fn keep(&self, id: AcquisitionId, fence: Fence, time: Duration) -> ReleaseAnswer {
        self.calls().release(id, fence, Some(time)).await.expect("keep")
    }

    /// Renews a batch.
    pub async fn renew_all(&self, batch: &[Renewal]) -> Vec<RenewAnswer> {
        self.calls().renew(batch).await.expect("renew")
    }

    /// Renews one lease to 60 s.
    pub async fn renew(&self, id: AcquisitionId, fence: Fence) -> RenewAnswer {
        self.renew_for(id, fence, ttl(60)).await
    }

    /// Renews one lease.
    pub async fn renew_for(&self, id: AcquisitionId, fence: Fence, ttl: Ttl) -> RenewAnswer {
        self.renew_all(&[self.calls().renewal(id, fence, ttl)]).await.remove(0)
    }

    /// Withdraws; whether that ended a grant.
    pub async fn withdraw(&self, id: AcquisitionId) -> bool {
        self.calls().withdraw(id).await.expect("withdraw")
    }

    /// Looks at the lock.
    pub async fn inspect(&self) -> Inspection {
        self.calls().inspect().await.expect("inspect")
    }

    /// Looks at the lock and expects a holder: at once where a release passes the lock on.
    pub async fn holder(&self) -> LeaseRecord {
        let passes_on = self.subject.capabilities().contains(&Capability::Line);
        let limit = if passes_on { Duration::ZERO } else { Self::PASSED_ON };
        let held = async || match self.inspect().await {
            Inspection::Held(record) => Some(record),
            Inspection::Free { .. } => None,
        };
        let found = Patience::of(limit).until_async(held).await;
        found.unwrap_or_else(|| panic!("{} is free", self.name))
    }

    /// Looks at the lock and expects nobody; the last fence, if it is known.
    pub async fn free(&self) -> Option<Fence> {
        match self.inspect().await {
            Inspection::Free { last_fence } => last_fence,
            Inspection::Held(record) => panic!("{} is held by {record:?}", self.name),
        }
    }

    /// Ends a lease that was inspected.
    pub async fn force_release(&self, id: AcquisitionId, fence: Fence) -> ForceReleaseAnswer {
        self.calls().force_release(id, fence).await.expect("force_release")
    }

    /// Everything that the subject keeps.
    pub async fn snapshot(&self) -> Snapshot {
        self.subject.snapshot().await
    }

    /// Expects the subject as it was, but for the time that passes.
    #[track_caller]
    pub fn assert_same(&self, before: &Snapshot, after: &Snapshot, what: &str) {
        let content = |snapshot: &Snapshot| -> Vec<_> {
            snapshot.iter().map(|(key, (content, _))| (key.clone(), content.clone())).collect()
        };
        assert_eq!(content(before), content(after), "{what}");
        for (key, (_, left)) in after {
            let was = before[key].1;
            assert!(
                was.abs_diff(*left) <= self.subject.slack(),
                "{what}: {key} had {was:?}, has {left:?}"
            );
        }
    }

    /// Expects a time that remains: exactly under virtual time, else at most the slack less.
    #[track_caller]
    pub fn assert_left(&self, left: Duration, expected: Duration) {
        let least = expected.saturating_sub(self.subject.slack());
        assert!(left <= expected && left >= least, "{left:?} are left instead of {expected:?}");
    }
}
