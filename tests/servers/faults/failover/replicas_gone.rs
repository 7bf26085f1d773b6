use std::{thread, time::Duration};

use leasehold::{Guard, redis::Replication};

use super::{overlap, unacknowledged::try_in_vain};
use crate::{
    faults::server::scene::{self, LEASE},
    support::{
        crew::{Crew, Plan},
        lease,
        matrix::row,
        pair::Pair,
    },
};

row! {
    replicas_gone: protected, control;
    fault: "every replica is gone under processes that ask for one acknowledgement (WAIT)",
    right: "nobody gets the lock, errors say why, holders learn of the loss; work goes on with a replica",
    control: "a client that takes what the master alone has, followed by a failover",
}

/// How often somebody tries meanwhile.
const TRIES: usize = 3;
/// Of the leases in the control.
const TTL: Duration = Duration::from_secs(10);

fn protected() -> String {
    let plan = Plan { replicas: 1, ..Plan::PROTECTED };
    let pair = Pair::start();
    let mut crew = Crew::start(&plan, &pair.url());
    crew.work(20);
    crew.halt(0);
    pair.replica.kill();
    // The renewals of the halted holder are not acknowledged.
    thread::sleep(plan.ttl);
    let before = crew.value();
    thread::sleep(plan.ttl);
    assert_eq!(crew.value(), before, "somebody had a lease");
    scene::run(async {
        let locks = scene::connect(&pair.url(), plan.ttl).await;
        for _ in 0..TRIES {
            try_in_vain(&locks, "other").await;
        }
    });
    crew.resume(0);
    pair.replica.restart();
    pair.replica.follow(&pair.master);
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.lost > 0, "{summary:?}");
    scene::leaves_nothing(&pair.master);
    format!("{TRIES} tries failed for want of a replica; {}", finished.right())
}

fn control() -> String {
    scene::run(async {
        let pair = Pair::start();
        pair.replica.cut_off();
        let alone = take(&pair).await;
        pair.promote();
        pair.announce();
        let next = take(&pair).await;
        assert!(lease::is_held(&pair.replica, LEASE) && alone.is_held());
        let by = overlap::of(&alone, &next);
        format!("two holders believed for {} ms at least", by.as_millis())
    })
}

/// A lease that no replica has acknowledged.
async fn take(pair: &Pair) -> Guard {
    let locks = scene::connect(&pair.url(), TTL).await;
    let lock = locks.lock("value").expect("a name");
    lock.acquire().replication(Replication::NONE).await.expect("a free lock")
}
