use leasehold::{
    Guard, LockRuntime,
    fencing::{Admitted, FenceGate, GateError, RedisGate},
};
use leasehold_testkit::RedisServer;

use super::scene::connect;
use crate::support::{matrix::row, storage, wait};

row! {
    watermark_in_same_redis_lost: protected, control;
    fault: "the server that has lock, data and watermark loses all of them (FLUSHALL)",
    right: "a limit: the gate answers First to the next writer; advance shuts stale holders out",
    control: "the same gate, without advance",
}

const KEY: &str = "stock:{7}";

/// A holder that has written, and the next one after all was lost.
struct Scene {
    server: RedisServer,
    gate: RedisGate,
    stale: Guard,
    holder: Guard,
    _runtimes: [LockRuntime; 2],
}

async fn lose_all() -> Scene {
    let server = RedisServer::start();
    let gate = storage::gate_at(&server.url());
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let stale = locks.lock("7").expect("a name").acquire().await.expect("a lease");
    assert_eq!(gate.set(KEY, "before", stale.stamp()).await, Ok(Admitted::First));
    server.flush_all();
    let holder = others.lock("7").expect("a name").acquire().await.expect("a lease");
    // The fence grows although nobody remembers the last one.
    assert!(holder.fence() > stale.fence());
    Scene { server, gate, stale, holder, _runtimes: [locks, others] }
}

fn protected() -> String {
    wait::on_one_thread(async {
        let Scene { server, gate, stale, holder, _runtimes } = lose_all().await;
        // First, where the holder knows of an earlier one, tells that the watermark was lost.
        assert_eq!(gate.advance(KEY, holder.stamp()).await, Ok(Admitted::First));
        for _ in 0..3 {
            let outcome = gate.set(KEY, "stale", stale.stamp()).await;
            assert!(matches!(outcome, Err(GateError::Stale(_))), "{outcome:?}");
        }
        assert_eq!(gate.set(KEY, "holder", holder.stamp()).await, Ok(Admitted::Again));
        assert_eq!(server.query::<String>(&["GET", KEY]), "holder");
        holder.release().await.expect("held to the end");
        // The one before finds out at its next command.
        assert!(stale.reenter().await.is_err());
        wait::soon("the loss is told", stale.lost()).await;
        "answered First; after advance 3 stale writes refused, 0 accepted".into()
    })
}

fn control() -> String {
    wait::on_one_thread(async {
        let Scene { server, gate, stale, holder, _runtimes } = lose_all().await;
        // As documented: the next one is taken for the first, however old its fence.
        assert_eq!(gate.set(KEY, "stale", stale.stamp()).await, Ok(Admitted::First));
        assert_eq!(server.query::<String>(&["GET", KEY]), "stale");
        assert!(stale.fence() < holder.fence());
        "1 stale write accepted, and answered First".into()
    })
}
