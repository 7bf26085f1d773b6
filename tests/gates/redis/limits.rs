//! What the gate on Redis says that it does not do: each limit shows itself here.

use std::time::Duration;

use leasehold_fencing::{Admitted, GateError, RedisGate, Stamp};
use leasehold_testkit::{
    FaultProxy, RedisServer,
    proxy::{Action, Rule},
};

use super::{KEY, gate_at, get, stamp};

/// A server that is full and may evict keys that have a time to live.
fn evicting() -> RedisServer {
    RedisServer::builder().arg("maxmemory-policy", "volatile-lru").start()
}

/// Evicts all that may be evicted, then makes room again.
async fn fill_up(server: &RedisServer, gate: &RedisGate, other: Stamp) {
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    // A write to a full server evicts before it is refused.
    for n in 0..20 {
        let refused = gate.set(&format!("other:{{{n}}}"), "x", other).await;
        assert!(matches!(refused, Err(GateError::Store(_))), "{refused:?}");
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
}

#[tokio::test]
async fn a_watermark_without_a_time_to_live_is_not_evicted_where_one_with_it_is() {
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let server = evicting();
    let gate = gate_at(&server.url());
    assert!(gate.set(KEY, "newer", newer).await.is_ok());
    fill_up(&server, &gate, newer).await;
    let late = gate.set(KEY, "late", older).await;
    assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
    assert_eq!(get(&server, KEY).as_deref(), Some("newer"));

    // The control arm, as `watermark_ttl` says of itself.
    let server = evicting();
    let gate = gate_at(&server.url()).watermark_ttl(Duration::from_secs(24 * 60 * 60));
    let gate = gate.expect("in range");
    assert!(gate.set(KEY, "newer", newer).await.is_ok());
    fill_up(&server, &gate, newer).await;
    assert_eq!(gate.set(KEY, "late", older).await, Ok(Admitted::First));
    assert_eq!(get(&server, KEY).as_deref(), Some("late"));
}

/// A write whose first copy is still on its way, and which arrives when others have been answered.
async fn late_copy(between: Stamp) -> (RedisServer, String) {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let gate = gate_at(&proxy.url());
    let lease = stamp(41, 1);
    assert!(gate.set(KEY, "zero", lease).await.is_ok());
    proxy.inject(Rule::new(Action::CopyLater).containing("one"));
    assert!(gate.set(KEY, "one", lease).await.is_ok());
    assert!(gate.set(KEY, "two", between).await.is_ok());
    assert_eq!(proxy.copies(), 1);
    assert!(proxy.replay().iter().all(|answer| answer.starts_with('*')));
    let value = get(&server, KEY).unwrap_or_default();
    (server, value)
}

#[tokio::test]
async fn a_lost_write_is_shut_out_by_a_newer_lease_and_not_by_a_newer_write_of_its_own() {
    let (_server, value) = late_copy(stamp(42, 2)).await;
    assert_eq!(value, "two");
    // The control arm, as `set` says of itself.
    let (_server, value) = late_copy(stamp(41, 1)).await;
    assert_eq!(value, "one");
}

/// One key of two resources has two watermarks.
#[tokio::test]
async fn a_part_that_is_also_a_resource_of_its_own_lets_a_late_write_in() {
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let part = format!("{KEY}:log");
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let write = gate.wrap("return redis.call('SET', KEYS[1], ARGV[1])");
    let late = async || write.call(KEY, [part.as_str()], ["late"], older).await;

    // Through its whole only, it is guarded.
    assert!(write.call(KEY, [part.as_str()], ["newer"], newer).await.is_ok());
    assert!(matches!(late().await, Err(GateError::Stale(_))));
    assert_eq!(get(&server, &part).as_deref(), Some("newer"));

    // The control arm, as `FencedScript::call` says of itself.
    server.command(&["FLUSHALL"]);
    assert_eq!(gate.set(&part, "newer", newer).await, Ok(Admitted::First));
    assert!(late().await.is_ok());
    assert_eq!(get(&server, &part).as_deref(), Some("late"));
}
