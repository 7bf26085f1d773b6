use std::{sync::Arc, time::Duration};

use leasehold::{
    AcquisitionId, LockName, LockRuntime,
    error::{AcquireError, StoreErrorKind},
    redis::{RedisConfig, Replication},
    time::{Clock, SystemClock},
};
use leasehold_core::{
    Entropy, RuntimeLabel, SystemEntropy, Ttl,
    store::{Acquire, AcquireAnswer, Ask},
};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    CommandKind, Gate, Patience, RedisServer,
    proxy::{Action, FaultProxy, Rule},
    server::ReplicatedPair,
};
use tokio::runtime::Handle;

use super::{asking, assert_unacknowledged, connect, holds, one, one_in_time};
use crate::support::wait;

#[tokio::test]
async fn a_granted_lease_is_on_the_replica() {
    let pair = ReplicatedPair::start();
    let locks = connect(&pair.master, one_in_time()).await;
    let guard = locks.lock("a").unwrap().acquire().await.expect("one replica is there");
    // At once: a replica that has acknowledged needs no time.
    assert!(holds(&pair.replica, "a"));
    guard.release().await.expect("a lease that was held to the end");
}

#[tokio::test]
async fn a_try_without_a_replica_fails_and_is_taken_back() {
    let server = RedisServer::start();
    let locks = connect(&server, one()).await;
    assert_unacknowledged(locks.lock("a").unwrap().try_acquire().await);
    wait::until("it is taken back", || !holds(&server, "a")).await;
    // The control needs none.
    let lock = locks.lock("a").unwrap();
    let guard = lock.acquire().replication(Replication::NONE).await;
    guard.expect("the master has it").release().await.expect("it is held");
}

#[tokio::test]
async fn a_wait_without_a_replica_ends_and_leaves_nothing() {
    let server = RedisServer::start();
    let locks = connect(&server, one()).await;
    let lock = locks.lock("a").unwrap();
    assert_unacknowledged(lock.acquire().wait(Duration::from_secs(2)).await);
    wait::until("it is taken back", || !holds(&server, "a")).await;
    assert!(server.keys_without_ttl().is_empty());
}

/// Each of them finds the lock taken while a grant of the other one waits for replicas.
#[tokio::test]
async fn waits_of_two_processes_without_a_replica_do_not_look_like_contention() {
    let server = RedisServer::start();
    let both = [connect(&server, one()).await, connect(&server, one()).await];
    let wait = async |locks: &LockRuntime| {
        locks.lock("a").unwrap().acquire().wait(Duration::from_secs(3)).await
    };
    for _ in 0..2 {
        let (one, other) = tokio::join!(wait(&both[0]), wait(&both[1]));
        assert_unacknowledged(one);
        assert_unacknowledged(other);
    }
}

#[tokio::test]
async fn a_lost_answer_does_not_hide_that_too_few_replicas_had_the_grant() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let locks = asking(one()).connect(proxy.url()).await.expect("the server answers");
    // Its renewals are answered all the time, on a connection of their own.
    let beside = locks.lock("beside").unwrap().acquire().replication(Replication::NONE);
    let beside = beside.ttl(Duration::from_millis(600)).await.expect("a free lock");
    let gate = Gate::new();
    // The first answer comes, and is that too few replicas have it.
    let lost = Rule::new(Action::Hold(gate.clone())).replies().on(CommandKind::Heartbeat);
    let lost = proxy.inject(lost.skip(1).always());
    let asked = locks.lock("a").unwrap().acquire().wait(Duration::from_secs(4)).await;
    assert!(proxy.struck(lost) > 0, "an answer is lost");
    assert_unacknowledged(asked);
    gate.open();
    drop(beside);
}

/// The control: the lock is taken by a holder that needs no replica.
#[tokio::test]
async fn a_lock_that_is_held_is_taken_also_without_a_replica() {
    let server = RedisServer::start();
    let (holder, waiter) =
        (connect(&server, Replication::NONE).await, connect(&server, one()).await);
    assert_unacknowledged(waiter.lock("a").unwrap().try_acquire().await);
    let guard = holder.lock("a").unwrap().acquire().await.expect("it needs no replica");
    let asked = waiter.lock("a").unwrap().acquire().wait(Duration::from_secs(3)).await;
    assert!(matches!(asked, Err(AcquireError::Timeout(_))), "{asked:?}");
    guard.release().await.expect("a lease that was held to the end");
}

#[tokio::test]
async fn a_wait_goes_on_until_the_replica_does() {
    let pair = ReplicatedPair::start();
    let locks = connect(&pair.master, one()).await;
    pair.replica.stop_signal();
    let lock = locks.lock("a").unwrap();
    assert_unacknowledged(lock.try_acquire().await);
    let withdrawn = || pair.master.query::<u64>(&["ZCARD", "leasehold:{a}:withdrawn"]);
    wait::until("the try is withdrawn", || withdrawn() > 0).await;
    let before = withdrawn();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    wait::until("it was taken back, and asks anew", || withdrawn() > before + 1).await;
    assert!(!waiting.is_finished());
    pair.replica.cont_signal();
    let guard = wait::soon("the replica goes on", waiting).await.unwrap().expect("a lease");
    assert!(holds(&pair.replica, "a"));
    guard.release().await.expect("it is held");
}

/// The message of a grant waits for no replica, so the one who gets it does.
#[tokio::test]
async fn who_waits_enters_when_the_replica_has_the_grant() {
    let pair = ReplicatedPair::start();
    let holder = connect(&pair.master, one()).await;
    let waiter = asking(one()).connect(pair.master.url()).await.unwrap();
    let guard = holder.lock("a").unwrap().acquire().await.expect("one replica is there");
    let lock = waiter.lock("a").unwrap();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    wait::until("it stands in line", || {
        pair.master.query::<u64>(&["ZCARD", "leasehold:{a}:queue"]) == 1
    })
    .await;
    pair.replica.stop_signal();
    guard.release().await.expect("a release needs no replica");
    let granted = || holds(&pair.master, "a") && !waiting.is_finished();
    wait::until("it is granted on the master", granted).await;
    // Longer than one wait for replicas.
    SystemClock.sleep_until(SystemClock.now() + Duration::from_secs(1)).await;
    assert!(!waiting.is_finished(), "no replica has it");
    pair.replica.cont_signal();
    let guard = wait::soon("the replica goes on", waiting).await.unwrap().expect("a lease");
    guard.release().await.expect("it is held");
}

/// A repeat of a grant writes nothing. On Redis 7.4 and newer, `WAIT` on its own connection would
/// then answer at once, as the control does.
#[tokio::test]
async fn a_repeat_counts_only_when_the_replica_has_the_first_copy() {
    let pair = ReplicatedPair::start();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let config = RedisConfig::new(pair.master.url()).unwrap();
    let id = SystemEntropy.runtime_id();
    let store = RedisStore::connect(&config, Arc::clone(&clock), Handle::current(), id);
    let store = store.await.expect("the server answers");
    let (name, label) = (LockName::new("a").unwrap(), RuntimeLabel::new("test"));
    let ask = |acks| Acquire {
        name: name.clone(),
        id: AcquisitionId::new(id, 1),
        mode: leasehold_core::Mode::Write,
        ttl: Ttl::default(),
        watermark: None,
        label: label.clone(),
        keeps: false,
        wait: None,
        acks,
    };
    let acquired = async |acks| store.ask(ask(acks), clock.now() + Duration::from_secs(10)).await;
    pair.replica.stop_signal();
    let first = acquired(Replication::NONE).await;
    assert!(matches!(first, Ok(AcquireAnswer::Granted(_))), "{first:?}");
    let error = acquired(one()).await.expect_err("no replica has it");
    assert!(error.is_unacknowledged(), "{error}");
    assert_eq!(error.kind(), StoreErrorKind::Indeterminate);

    pair.replica.cont_signal();
    let has_it = async || {
        let again = acquired(one()).await;
        matches!(again, Ok(AcquireAnswer::Granted(_))).then_some(())
    };
    let found = Patience::of(wait::CEILING).until_async(has_it).await;
    found.expect("the replica has the first copy");
}

/// What `WAIT` says on a connection that wrote nothing, whatever the replica has.
#[tokio::test]
async fn control_a_wait_behind_a_read_says_nothing() {
    let pair = ReplicatedPair::start();
    pair.replica.stop_signal();
    pair.master.command(&["SET", "a", "1"]);
    let client = redis::Client::open(pair.master.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let (_, counted): (String, i64) =
        redis::pipe().get("a").cmd("WAIT").arg(1).arg(300).query(&mut connection).unwrap();
    let says_one = pair.master.version().waits_for_own_writes_only();
    assert_eq!(counted, i64::from(says_one));
    pair.replica.cont_signal();
}

/// Tasks of one process stand in one line, whatever they ask for.
#[tokio::test]
async fn a_call_that_needs_no_replica_is_told_that_it_stands_behind_one_that_does() {
    let server = RedisServer::start();
    let locks = connect(&server, one()).await;
    let lock = locks.lock("a").unwrap();
    let first = tokio::spawn(lock.acquire().wait(wait::CEILING));
    wait::until("it waits for a replica", || holds(&server, "a")).await;
    let second = lock.acquire().replication(Replication::NONE).wait(Duration::from_secs(2)).await;
    match second.expect_err("it stands behind the first") {
        AcquireError::Unavailable(why) => {
            assert!(!why.error.is_unacknowledged(), "it has asked for nothing: {why}");
            let said = why.to_string();
            assert!(said.contains("stands before this call waits for replicas"), "{said}");
        }
        other => panic!("{other}"),
    }
    first.abort();
}
