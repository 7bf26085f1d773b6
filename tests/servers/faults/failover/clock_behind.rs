use std::{thread, time::Duration};

use leasehold::{Guard, fencing::GateError};
use leasehold_testkit::{ClockShim, LockText, RedisServer};

use crate::{
    faults::server::scene::{self, LEASE},
    support::{
        crew::{Crew, Plan},
        matrix::row,
        pair::Pair,
        storage, unheard, wait,
    },
};

row! {
    clock_behind: protected, control;
    fault: "a failover that loses the last grants, to a master whose clock is behind by less than the outage",
    right: "processes that have seen no fence get greater ones; the late write is refused",
    control: "a clock that is behind by more than the outage",
}

/// By how much the clock of the new master is behind.
const BEHIND: Duration = Duration::from_millis(800);
/// How much longer the outage is.
const MORE: Duration = Duration::from_millis(100);
/// By how much it is behind in the control.
const FAR_BEHIND: Duration = Duration::from_secs(60);
/// Of the leases in the control.
const TTL: Duration = Duration::from_secs(1);
/// One process that sees the fences of the old master.
const PLAN: Plan = Plan { processes: 1, ..Plan::PROTECTED };

fn protected() -> String {
    let shim = ClockShim::build();
    shim.back(BEHIND);
    let pair = Pair::with_clock(&shim);
    let mut crew = Crew::start(&PLAN, &pair.url());
    crew.work(20);
    wait::block_until("the replica has the lock", || {
        LockText::find(&pair.replica, LEASE).is_some()
    });
    pair.promote();
    let read = unheard::halt(&mut crew, 0, &pair.master, LEASE);
    let last = LockText::of(&pair.master, LEASE).last();
    assert!(LockText::of(&pair.replica, LEASE).last() < last, "nothing is lost");
    pair.master.kill();
    thread::sleep(BEHIND + MORE);
    pair.announce();
    crew.join(&pair.url(), 2);
    crew.until_above(read);
    thread::sleep(PLAN.ttl);
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    scene::leaves_nothing(&pair.replica);
    format!("{} ms behind: {seen}", BEHIND.as_millis())
}

fn control() -> String {
    scene::run(async {
        let shim = ClockShim::build();
        shim.back(FAR_BEHIND);
        let (pair, storage) = (Pair::with_clock(&shim), RedisServer::start());
        let gate = storage::gate_at(&storage.url());
        pair.promote();
        let old = take(&pair).await;
        gate.set("{v}", "old", old.stamp()).await.expect("the holder writes");
        pair.master.kill();
        pair.announce();
        let new = take(&pair).await;
        assert!(new.fence() < old.fence(), "the control's fences grew");
        let refused = gate.set("{v}", "new", new.stamp()).await;
        assert!(matches!(refused, Err(GateError::Stale(_))), "{refused:?}");
        gate.set("{v}", "late", old.stamp()).await.expect("the control's storage takes it");
        "the fence fell: the holder is refused, the last one's late write taken".into()
    })
}

/// A lease of a process that has seen no fence.
async fn take(pair: &Pair) -> Guard {
    scene::take(&scene::connect(&pair.url(), TTL).await, "value").await
}
