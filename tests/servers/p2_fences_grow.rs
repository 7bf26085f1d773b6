//! P2 on real servers: a fence is greater than every one before it, whatever Redis has lost.

use leasehold::{
    FenceToken, Guard, LockRuntime,
    fencing::{Admitted, FenceGate, GateError},
    store::{FencePolicy, FenceSettings},
};
use leasehold_testkit::{Patience, RedisServer};

use crate::support::{patient, storage, wait};

/// The key that has the counter, too.
const LEASE: &str = "leasehold:{a}:lease";

/// A runtime without memory of earlier tokens.
async fn runtime_at(server: &RedisServer, policy: FencePolicy) -> LockRuntime {
    let fencing = FenceSettings::default().policy(policy);
    patient::builder().fencing(fencing).connect(&server.url()).await.expect("the server answers")
}

async fn take(locks: &LockRuntime) -> Guard {
    let lock = locks.lock("a").expect("a name");
    wait::soon("a free lock", lock.acquire()).await.expect("a lease")
}

async fn take_and_give(locks: &LockRuntime) -> FenceToken {
    let guard = take(locks).await;
    let fence = guard.fence();
    guard.release().await.expect("a lease that was held to the end");
    fence
}

/// Grants before and after a loss, each from a runtime of its own, then from the first again.
async fn grants_around(server: &RedisServer, lose: impl FnOnce(&RedisServer)) -> [FenceToken; 4] {
    let first = runtime_at(server, FencePolicy::default()).await;
    let before = [take_and_give(&first).await, take_and_give(&first).await];
    lose(server);
    let second = runtime_at(server, FencePolicy::default()).await;
    [before[0], before[1], take_and_give(&second).await, take_and_give(&first).await]
}

#[tokio::test]
async fn flushall_between_two_grants() {
    let server = RedisServer::start();
    let fences = grants_around(&server, RedisServer::flush_all).await;
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[tokio::test]
async fn a_restart_without_persistence_between_two_grants() {
    let server = RedisServer::start();
    let fences = grants_around(&server, RedisServer::restart).await;
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[tokio::test]
async fn a_deleted_counter_between_two_grants() {
    let server = RedisServer::start();
    let delete = |server: &RedisServer| assert_eq!(server.query::<u64>(&["DEL", LEASE]), 1);
    let fences = grants_around(&server, delete).await;
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[tokio::test]
async fn an_evicted_counter_between_two_grants() {
    let server = RedisServer::start();
    let fences = grants_around(&server, evict_counter).await;
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

/// Fills a server that evicts whatever it likes until the key of the counter is gone.
fn evict_counter(server: &RedisServer) {
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]);
    server.command(&["CONFIG", "SET", "maxmemory", "4mb"]);
    let fill = "for i = 1, 500 do redis.call('INCR', 'n') \
                redis.call('SET', 'filler' .. redis.call('INCR', 'n') .. ARGV[1], ARGV[2]) end \
                return redis.call('EXISTS', KEYS[1])";
    let filler = "x".repeat(1000);
    let mut round = 0;
    let evicted = Patience::of(wait::CEILING).until(|| {
        round += 1;
        let call = ["EVAL", fill, "1", LEASE, &format!("-{round}"), &filler];
        let exists: u64 = server.try_query(&call).unwrap_or(1);
        (exists == 0).then_some(())
    });
    assert!(evicted.is_some(), "the counter was not evicted");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
}

#[tokio::test]
async fn a_counter_that_lost_its_data_goes_on_above_what_a_runtime_has_seen() {
    let server = RedisServer::start();
    let locks = runtime_at(&server, FencePolicy::Counter).await;
    let before = take_and_give(&locks).await;
    server.flush_all();
    assert!(take_and_give(&locks).await > before);
}

#[tokio::test]
async fn control_a_plain_counter_repeats_itself() {
    let server = RedisServer::start();
    let before = take_and_give(&runtime_at(&server, FencePolicy::Counter).await).await;
    server.flush_all();
    let after = take_and_give(&runtime_at(&server, FencePolicy::Counter).await).await;
    assert_eq!((before.get(), after), (1, before));
}

/// Two holders around a loss of all data, each believing: what becomes of their writes.
async fn writes_around_a_loss(policy: FencePolicy) -> [Result<Admitted, GateError>; 3] {
    let (server, storage) = (RedisServer::start(), RedisServer::start());
    let gate = storage::gate_at(&storage.url());
    let first = runtime_at(&server, policy).await;
    for _ in 0..3 {
        take_and_give(&first).await;
    }
    let old = take(&first).await;
    let before = gate.set("{v}", "old", old.stamp()).await;
    server.flush_all();
    let second = runtime_at(&server, policy).await;
    let new = take(&second).await;
    let writes = [
        before,
        gate.set("{v}", "new", new.stamp()).await,
        gate.set("{v}", "late", old.stamp()).await,
    ];
    let value: String = storage.query(&["GET", "{v}"]);
    assert_eq!(value, if writes[2].is_ok() { "late" } else { "new" });
    writes
}

#[tokio::test]
async fn the_storage_refuses_the_holder_from_before_the_loss() {
    let [before, new, late] = writes_around_a_loss(FencePolicy::default()).await;
    assert_eq!((before, new), (Ok(Admitted::First), Ok(Admitted::Newer)));
    let Err(GateError::Stale(stale)) = late else { panic!("{late:?}") };
    assert!(stale.presented.fence < stale.highest.fence, "{stale}");
}

#[tokio::test]
async fn control_with_a_plain_counter_the_storage_refuses_the_wrong_one() {
    let [before, new, late] = writes_around_a_loss(FencePolicy::Counter).await;
    assert_eq!(before, Ok(Admitted::First));
    assert!(matches!(new, Err(GateError::Stale(_))), "{new:?}");
    assert_eq!(late, Ok(Admitted::Again));
}

#[tokio::test]
async fn a_taken_lease_shuts_out_the_old_holder_before_its_first_write() {
    let (server, storage) = (RedisServer::start(), RedisServer::start());
    let gate = storage::gate_at(&storage.url());
    let first = runtime_at(&server, FencePolicy::default()).await;
    let old = take(&first).await;
    server.restart();
    let second = runtime_at(&server, FencePolicy::default()).await;
    let new = take(&second).await;
    assert_eq!(gate.advance("{v}", new.stamp()).await, Ok(Admitted::First));
    let late = gate.set("{v}", "late", old.stamp()).await;
    assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
    assert_eq!(storage.query::<Option<String>>(&["GET", "{v}"]), None);
}
