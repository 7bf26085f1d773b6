//! Keys of layout 4, as they were stored: each later version has to read them.

use leasehold_core::{
    AcquisitionId, Fence, FencePolicy, FenceSettings,
    store::{Inspection, LeaseRecord, ReleaseAnswer, RenewAnswer},
};
use leasehold_testkit::{
    RedisServer,
    contract::{alice, carol, ttl},
};

use super::support::{calls, config, connect_with, granted, store_on};

const LEASE: &str = "leasehold:{orders/42}:lease";

/// A lock that is free.
const FREE: &str = "v4 x------- 1763864400000000 9999999999999";
/// One with a plain counter.
const PLAIN: &str = "v4 x------- 0000000000000041 0000000000000";
/// One that is only kept closed.
const KEPT: &str = "v4 x-k----- 1763864400000000 9999999999999 1763864399998977 1763864400000000 9999999999998 \
     b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7-4f0c1a92be7d3358 web-1/4711/orders";
/// One that is held twice and waited for, with marks, and whose label has spaces.
const HELD: &str = "v4 xw-hm--- 1763864400000000 9999999999999 1763864399998977 1763864400000000 9999999999998 \
     b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7-4f0c1a92be7d3358 ~web-1/4711/orders of May 0000000002/00000000000000000007 \
     9999999999997";
/// One that is held, and that nobody waits for.
const LEASED: &str = "v4 x------- 1763864400000000 9999999999999 1763864399998977 1763864400000000 9999999999998 \
     b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7-4f0c1a92be7d3358 web-1/4711/orders";
const HOLDER: &str = "b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7-4f0c1a92be7d3358";
/// Who waits for it, its place in the hash, and its score.
const WAITER: [&str; 3] = [
    "0f4c1e52-9a63-4c1f-8d5e-6b7a8c9d0e1f",
    "3-09d3e7b15c2846fa 12 9000000000000000 3000 1763864300000000 web-2/4711/orders",
    "1763864400000001",
];

fn held(found: Inspection) -> LeaseRecord {
    match found {
        Inspection::Held(record) => record,
        free @ Inspection::Free { .. } => panic!("{free:?}"),
    }
}

fn holder() -> AcquisitionId {
    AcquisitionId::of_stored(HOLDER).expect("an acquisition")
}

#[tokio::test]
async fn a_free_lock_of_layout_4_goes_on_with_its_counter() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for (stored, last) in [(FREE, 1_763_864_400_000_000), (PLAIN, 41)] {
        server.command(&["SET", LEASE, stored]);
        let last_fence = Fence::try_from(last).ok();
        assert_eq!(calls.inspect().await.expect("inspect"), Inspection::Free { last_fence });
        assert!(granted(&calls, alice(1)).await.get() > last);
    }
}

#[tokio::test]
async fn a_lease_of_layout_4_is_read_and_passed_on() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    server.command(&["SET", LEASE, KEPT]);
    assert!(held(calls.inspect().await.expect("inspect")).kept);

    server.command(&["SET", LEASE, HELD]);
    let [runtime, place, score] = WAITER;
    server.command(&["ZADD", "leasehold:{orders/42}:queue", score, runtime]);
    server.command(&["HSET", "leasehold:{orders/42}:waiters", runtime, place]);
    let marked = carol(9).to_stored();
    server.command(&["ZADD", "leasehold:{orders/42}:withdrawn", "9999999999997", &marked]);
    let record = held(calls.inspect().await.expect("inspect"));
    assert_eq!((record.id, record.holds, record.keeps), (holder(), 2, true));
    assert_eq!(record.fence.get(), 1_763_864_399_998_977);
    assert_eq!(record.label, "web-1/4711/orders of May");
    let waiters: Vec<_> = record.waiters.iter().map(|waiter| &*waiter.label).collect();
    assert_eq!(waiters, ["web-2/4711/orders"]);

    let released = calls.release(holder(), record.fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
    let next = held(calls.inspect().await.expect("inspect"));
    assert_eq!((next.id.runtime().to_string(), next.holds), (runtime.to_owned(), 1));
    assert!(next.fence.get() > 1_763_864_400_000_000);
    let withdrawn = calls.acquire(carol(9), ttl(60), None).await;
    assert_eq!(format!("{:?}", withdrawn.expect("acquire")), "Withdrawn");
}

/// A runtime with a retention has given the lock to one without: the counter is to stay.
#[tokio::test]
async fn a_renewal_without_a_retention_keeps_the_counter_for_ever() {
    let server = RedisServer::start();
    let plain = FenceSettings::default().policy(FencePolicy::Counter);
    let store = connect_with(&config(&server.url()).fencing(plain)).await.expect("it lets all in");
    let calls = calls(&store);
    server.command(&["SET", LEASE, LEASED, "PX", "604800000"]);
    let fence = Fence::try_from(1_763_864_399_998_977_u64).expect("a fence");
    let answers = calls.renew(&[calls.renewal(holder(), fence, ttl(60))]).await.expect("renew");
    assert!(matches!(answers[..], [RenewAnswer::Renewed { .. }]), "{answers:?}");
    assert_eq!(server.query::<i64>(&["PTTL", LEASE]), -1);
}
