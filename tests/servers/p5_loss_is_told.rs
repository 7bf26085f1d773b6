//! P5 on a real server: a holder that loses its lease is told.

use std::time::Duration;

use leasehold::{
    Guard, LeaseEnd, LeaseState, LockRuntime, LossReason,
    error::{AcquireError, LeaseLost, ReenterError, ReleaseError, WithError},
    time::{Clock, SystemClock},
};
use leasehold_testkit::RedisServer;

use crate::support::{lease, patient, wait};

const TTL: Duration = Duration::from_secs(5);
const DATA_LOST: LeaseEnd = LeaseEnd::Lost(LossReason::DataLost);
const FORCED: LeaseEnd = LeaseEnd::Lost(LossReason::ForceReleased);

async fn runtime_at(server: &RedisServer) -> LockRuntime {
    patient::builder().ttl(TTL).connect(&server.url()).await.expect("the server answers")
}

async fn take(locks: &LockRuntime) -> Guard {
    let lock = locks.lock("a").expect("a name");
    wait::soon("a lease", lock.acquire()).await.expect("a lease")
}

/// All that a guard can be asked says that its lease was lost for `reason`.
async fn all_say_lost(guard: Guard, reason: LossReason) {
    assert_eq!(guard.lease().state(), LeaseState::Lost(reason));
    assert!(!guard.is_held() && guard.remaining().is_zero());
    assert!(guard.cancellation().is_cancelled());
    let reentered = guard.reenter().await;
    assert!(matches!(reentered, Err(ReenterError::Lost(_))), "{reentered:?}");
    let released = guard.release().await;
    assert!(
        matches!(released, Err(ReleaseError::Lost(LeaseLost { reason: told, .. })) if told == reason),
        "{released:?}"
    );
}

#[tokio::test]
async fn belief_ends_before_the_server_forgets() {
    let server = RedisServer::start();
    let locks = runtime_at(&server).await;
    let lock = locks.lock("a").expect("a name");
    let guard = lock.acquire().renew(false).ttl(Duration::from_secs(20)).await.expect("a lease");
    let clock = SystemClock;
    // From both sides, the best of many looks: a look may be interrupted for any time.
    let believes = (0..200).map(|_| {
        let remaining = guard.remaining();
        clock.now() + remaining
    });
    let believes_until = believes.min().expect("many looks");
    let expires = (0..50).map(|_| {
        let asked_at = clock.now();
        asked_at + lease::left(&server, "leasehold:{a}:lease").expect("it is held")
    });
    let expires_at = expires.max().expect("many looks");
    assert!(believes_until < expires_at, "{believes_until:?}, {expires_at:?}");
}

#[tokio::test]
async fn a_loss_of_data_is_told_at_the_next_renewal() {
    for lose in [RedisServer::flush_all, RedisServer::restart] {
        let server = RedisServer::start();
        let (locks, others) = (runtime_at(&server).await, runtime_at(&server).await);
        let guard = take(&locks).await;
        lose(&server);
        assert_eq!(wait::soon("the next renewal", guard.lost()).await, DATA_LOST);
        assert!(take(&others).await.fence() > guard.fence());
        all_say_lost(guard, LossReason::DataLost).await;
    }
}

/// By a message: the next renewal would come after minutes.
#[tokio::test]
async fn a_force_release_is_told_at_once() {
    let server = RedisServer::start();
    let builder = || patient::builder().ttl(Duration::from_secs(24 * 3600));
    let locks = builder().connect(&server.url()).await.expect("the server answers");
    let guard = take(&locks).await;
    let channels = || server.query::<Vec<String>>(&["PUBSUB", "CHANNELS"]).len();
    wait::until("it listens", || channels() == 1).await;
    let operator = builder().connect(&server.url()).await.expect("the server answers");
    operator.force_release("a").await.expect("an answer");
    assert_eq!(wait::soon("the message", guard.lost()).await, FORCED);
    all_say_lost(guard, LossReason::ForceReleased).await;
}

#[tokio::test]
async fn a_closure_is_stopped_when_its_lease_is_lost() {
    let server = RedisServer::start();
    let locks = runtime_at(&server).await;
    let lock = locks.lock("a").expect("a name");
    let body = async |_| {
        server.flush_all();
        std::future::pending::<Result<(), ()>>().await
    };
    let outcome = wait::soon("the next renewal", lock.with(body)).await;
    assert!(
        matches!(outcome, Err(WithError::Lost(LeaseLost { reason: LossReason::DataLost, .. }))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_owner_that_lost_its_lease_is_told_when_it_acquires_again() {
    let server = RedisServer::start();
    let locks = runtime_at(&server).await;
    let (lock, owner) = (locks.lock("a").expect("a name"), locks.owner());
    let guard = lock.acquire().owner(&owner).await.expect("a lease");
    server.flush_all();
    let again = lock.acquire().owner(&owner).await;
    assert!(matches!(again, Err(AcquireError::Lost(_))), "{again:?}");
    all_say_lost(guard, LossReason::DataLost).await;
}
