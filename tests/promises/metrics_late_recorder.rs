//! A recorder that is installed late sees everything from then on.

use leasehold_core::metric::names;
use metrics_util::debugging::DebuggingRecorder;

use crate::support::{Seen, World, secs};

#[tokio::test]
async fn a_recorder_that_comes_late_sees_everything_from_then_on() {
    let world = World::new();
    let locks = world.runtime(1);
    let lock = locks.lock(World::NAME).unwrap().class("orders");
    let before = lock.acquire().await.unwrap();
    let unseen = locks.lock("orders/43").unwrap().class("orders");
    unseen.acquire().await.unwrap().release().await.unwrap();
    world.pass(secs(12)).await;

    let recorder = DebuggingRecorder::new();
    let seen = Seen::in_recorder(&recorder);
    let _listening = metrics::set_default_local_recorder(&recorder);

    // What happens from now on counts at once, on handles that were made before.
    unseen.acquire().await.unwrap().release().await.unwrap();
    let all = seen.all();
    assert_eq!(all["leasehold_acquire_total{class=orders,outcome=acquired}"].count, 1);
    assert_eq!(all["leasehold_held{class=orders}"].level, 1, "the old one is in it: absolute");

    // At the watchdog's next tick every series is there and described.
    world.pass(secs(5)).await;
    let all = seen.all();
    assert!(all.contains_key("leasehold_lost_total{class=orders,reason=gone}"));
    assert!(all.contains_key("leasehold_store_errors_total{kind=definite}"));
    assert!(all.iter().all(|(_, value)| value.described), "{all:?}");
    assert!(all.keys().any(|series| series.starts_with(names::RENEWALS_TOTAL)));
    assert_eq!(all["leasehold_held{class=orders}"].level, 1);

    before.release().await.unwrap();
    let all = seen.all();
    assert_eq!(all["leasehold_held{class=orders}"].level, 0);
    let held_for = &all["leasehold_hold_seconds{class=orders,end=released}"].values;
    assert_eq!(held_for.last(), Some(&17.0));
}
