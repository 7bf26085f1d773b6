//! P4 on a real server: every command lost, late, twice or unanswered, through the whole API.

use std::{sync::Arc, time::Duration};

use leasehold::{
    Guard, Lease, LockRuntime, ReentrantLock, Released,
    error::{ReleaseError, StoreError, StoreErrorKind},
    redis::RedisConfig,
    time::SystemClock,
};
use leasehold_core::{Entropy, SystemEntropy};
use leasehold_redis::RedisStore;
use leasehold_testkit::{CommandKind, Fault, FaultyStore, Gate, LockText, RedisServer, Rule};
use tokio::{runtime::Handle, task::JoinSet};

use crate::support::{lease, patient, wait};

/// Longer than these tests wait: what expires by itself does not help them.
const TTL: Duration = Duration::from_secs(60);
/// After which a command whose reply is lost counts as unanswered.
const COMMAND: Duration = Duration::from_millis(100);

const LEASE: &str = "leasehold:{a}:lease";

struct Scene {
    server: RedisServer,
    store: FaultyStore,
    locks: LockRuntime,
    lock: ReentrantLock,
}

async fn scene() -> Scene {
    let server = RedisServer::start();
    let (clock, id) = (Arc::new(SystemClock), SystemEntropy.runtime_id());
    let config = RedisConfig::new(&server.url()).expect("an address");
    let config = config.connect_timeout(wait::CEILING);
    let real = RedisStore::connect(&config, clock.clone(), Handle::current(), id).await;
    let store = FaultyStore::new(Arc::new(real.expect("the server answers")), clock);
    let builder = patient::builder().ttl(TTL).claim_window(TTL).command_timeout(COMMAND);
    let locks = builder.on_store(Arc::new(store.clone())).expect("settings that can work");
    let lock = locks.lock("a").expect("a name");
    Scene { server, store, locks, lock }
}

impl Scene {
    async fn acquire(&self) -> Guard {
        self.lock.acquire().wait(wait::CEILING).await.expect("a lease")
    }

    fn holds(&self, lease: &Lease) -> Option<u64> {
        lease::holds(&self.server, LEASE, lease.id())
    }

    /// A whole life of a lease: the same to its holder and on the server, whatever is lost.
    async fn live(&self) -> Lease {
        let guard = self.acquire().await;
        let lease = guard.lease();
        let fence = LockText::of(&self.server, LEASE).lease().fence;
        assert_eq!(fence, guard.fence().get());

        let inner = guard.reenter().await.expect("the lease is held");
        assert_eq!((inner.id(), inner.fence()), (guard.id(), guard.fence()));
        assert!(matches!(inner.release().await, Ok(Released::StillHeld(_))));
        wait::until("the server knows the holds", || self.holds(&lease) == Some(1)).await;

        match guard.release().await {
            Ok(released) => assert_eq!(released, Released::Ended),
            // Nothing was heard in time: the runtime goes on, and the lock is free soon.
            Err(error) => assert!(matches!(error, ReleaseError::Unconfirmed { .. }), "{error}"),
        }
        lease
    }

    /// What was late arrives, and changes nothing for the one that holds the lock now.
    async fn late_copies_change_nothing(&self) {
        let guard = self.acquire().await;
        let row = || lease::row(&self.server, LEASE);
        let before = row();
        self.store.deliver_late().await;
        assert_eq!(row(), before);
        guard.release().await.expect("held to the end");
        // A copy of an acquire that was answered long ago has queued again, and the release grants
        // it the lock; nobody waits for that, and it is taken back as soon as it is told.
        self.is_free_soon().await;
        // And nothing for a free lock either: nobody comes back as a ghost.
        self.store.deliver_late().await;
        assert!(!lease::is_held(&self.server, LEASE));
    }

    /// Long before a forgotten lease or place would have expired.
    async fn is_free_soon(&self) {
        let nothing = || lease::in_use(&self.server).is_empty();
        wait::until("nobody holds it, nobody waits", nothing).await;
    }

    async fn nothing_is_left(self) {
        self.store.heal();
        let report = self.locks.shutdown(wait::CEILING).await;
        assert_eq!((report.held, report.unreleased), (0, Vec::new()));
        self.store.deliver_late().await;
        assert!(!lease::is_held(&self.server, LEASE));
        assert_eq!(self.server.keys_without_ttl(), [""; 0]);
    }
}

/// Strikes the first commands of each kind in turn, then of all kinds.
async fn each_kind_struck(fault: Fault) {
    use CommandKind::{Acquire, Hold, Release};
    let scene = scene().await;
    let mut fence = scene.live().await.fence();
    for kinds in [&[Acquire][..], &[Hold], &[Release], &[Acquire, Hold, Release]] {
        for kind in kinds {
            scene.store.inject(Rule::new(fault.clone()).on(*kind).times(2));
        }
        let lease = scene.live().await;
        assert!(lease.fence() > fence, "{kinds:?}");
        fence = lease.fence();
        scene.store.heal();
        scene.late_copies_change_nothing().await;
    }
    scene.nothing_is_left().await;
}

#[tokio::test]
async fn each_kind_of_command_is_struck_by_each_fault() {
    let refusal = StoreError::new(StoreErrorKind::Definite, "not now", "try again");
    let faults = [
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::LateRequest,
        Fault::Duplicate,
        Fault::DelayReply(Gate::new()),
        Fault::Fail(refusal),
    ];
    let mut struck: JoinSet<_> = faults.into_iter().map(each_kind_struck).collect();
    while let Some(ended) = struck.join_next().await {
        ended.expect("no panic");
    }
}

#[tokio::test]
async fn withdrawals_are_struck_too() {
    let scene = scene().await;
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::LateRequest, Fault::Duplicate] {
        scene.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Acquire));
        scene.store.inject(Rule::new(fault).on(CommandKind::Withdraw));
        // Granted, but nobody hears of it: the call gives up, and takes it back.
        let outcome = scene.lock.try_acquire().await;
        assert!(outcome.is_err(), "{outcome:?}");
        // Long before the ttl of the grant that was taken back.
        scene.acquire().await.release().await.expect("held to the end");
        scene.late_copies_change_nothing().await;
    }
    scene.nothing_is_left().await;
}
