use leasehold::{
    Guard, LockRuntime, Stamp,
    fencing::{Admitted, GateError},
    store::{FencePolicy, FenceSettings},
};
use leasehold_testkit::RedisServer;

use super::scene::LONG;
use crate::support::{matrix::row, patient, storage, wait};

row! {
    stale_fence_equal_token: protected, control;
    fault: "a plain counter is lost: two leases have the same fence",
    right: "the gate compares the lease, too: the second one is refused",
    control: "a gate that compares only the numbers, and refuses only a smaller one",
}

async fn connect(server: &RedisServer) -> LockRuntime {
    let fencing = FenceSettings::default().policy(FencePolicy::Counter);
    let builder = patient::builder().ttl(LONG).fencing(fencing);
    builder.connect(&server.url()).await.expect("the server answers")
}

/// Leases of two runtimes with one fence, because the server lost its data in between; and the
/// runtime of the second.
async fn twins(server: &RedisServer) -> (Guard, Guard, LockRuntime) {
    let (locks, others) = (connect(server).await, connect(server).await);
    let old = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    server.flush_all();
    let new = others.lock("a").expect("a name").acquire().await.expect("a lease");
    assert_eq!(old.fence(), new.fence());
    assert!(old.is_held() && new.is_held() && old.id() != new.id());
    (old, new, others)
}

fn protected() -> String {
    wait::on_one_thread(async {
        let (server, shared) = (RedisServer::start(), RedisServer::start());
        let gate = storage::gate_at(&shared.url());
        let (old, new, others) = twins(&server).await;
        let (mut refused, twice) = (0, new.fence());
        for (key, first, second) in [("{a}", &old, &new), ("{b}", &new, &old)] {
            assert_eq!(gate.set(key, "first", first.stamp()).await, Ok(Admitted::First));
            for _ in 0..3 {
                let outcome = gate.set(key, "second", second.stamp()).await;
                let Err(GateError::Stale(stale)) = outcome else { panic!("{outcome:?}") };
                assert_eq!((stale.presented, stale.highest), (second.stamp(), first.stamp()));
                assert!(stale.to_string().contains("acquire the lock again"), "{stale}");
                refused += 1;
            }
            assert_eq!(gate.set(key, "first", first.stamp()).await, Ok(Admitted::Again));
            assert_eq!(shared.query::<String>(&["GET", key]), "first");
        }
        // What it says is what helps.
        new.release().await.expect("held to the end");
        let next = others.lock("a").expect("a name").acquire().await.expect("a lease");
        assert_eq!(gate.set("{a}", "next", next.stamp()).await, Ok(Admitted::Newer));
        drop(old);
        format!("fence {twice} given twice; {refused} writes of the twin refused")
    })
}

/// Refuses what is less than what it has seen.
const NAIVE: &str = "\
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[2]) or 0) then return 'stale' end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 'written'";

fn control() -> String {
    wait::on_one_thread(async {
        let (server, shared) = (RedisServer::start(), RedisServer::start());
        let (old, new, _others) = twins(&server).await;
        let write = |Stamp { fence, .. }: Stamp, value: &str| {
            let fence = fence.to_string();
            shared.query::<String>(&["EVAL", NAIVE, "2", "{a}", "{a}:seen", &fence, value])
        };
        let seen =
            [write(old.stamp(), "old"), write(new.stamp(), "new"), write(old.stamp(), "old")];
        assert!(seen.iter().all(|answer| answer == "written"), "{seen:?}");
        let value: String = shared.query(&["GET", "{a}"]);
        format!("both leases write with fence {}; {value} lasts", new.fence())
    })
}
