use std::time::Duration;

use leasehold::{LeaseEnd, LossReason, redis::Replication};
use leasehold_testkit::server::ReplicatedPair;

use super::{asking, connect, one, until_renewed};
use crate::support::wait;

/// A renewal that no replica has extends nothing: after a failover the lease would end earlier.
#[tokio::test]
async fn a_lease_ends_when_no_replica_has_its_renewals() {
    let pair = ReplicatedPair::start();
    let locks = asking(one()).ttl(Duration::from_secs(3)).connect(pair.master.url()).await.unwrap();
    let lock = locks.lock("a").unwrap();
    let guard = lock.acquire().await.expect("one replica is there");
    // The control needs none, and goes on.
    let none = Replication::NONE;
    let control = locks.lock("b").unwrap().acquire().ttl(Duration::from_secs(10)).replication(none);
    let control = control.await.expect("a free lock");
    pair.replica.stop_signal();
    let lost = wait::soon("the replica has none of its renewals", guard.lost()).await;
    assert_eq!(lost, LeaseEnd::Lost(LossReason::Expired));
    until_renewed(&control).await;
    pair.replica.cont_signal();
    control.release().await.expect("it is held");
}

/// A re-entry extends the lease; the extension is believed when a replica has it.
#[tokio::test]
async fn a_reentry_extends_what_the_replica_has() {
    let pair = ReplicatedPair::start();
    let locks = connect(&pair.master, one()).await;
    let held = async |name: &str, replication| {
        let acquire = locks.lock(name).unwrap().acquire().replication(replication);
        acquire.await.expect("one replica is there")
    };
    let (guard, control) = (held("a", one()).await, held("b", Replication::NONE).await);
    wait::a_moment().await;
    pair.replica.stop_signal();
    let (left, of_control) = (guard.remaining(), control.remaining());
    // It counts in this process; the server has it, and no replica does.
    let inner =
        (guard.reenter().await.expect("it is held"), control.reenter().await.expect("held"));
    assert!(guard.remaining() <= left, "no replica has the extension");
    assert!(control.remaining() > of_control, "the master has it");
    pair.replica.cont_signal();
    drop(inner);
    guard.release().await.expect("it is held");
    control.release().await.expect("it is held");
}

/// Tasks of one turn share its acknowledgement.
#[tokio::test]
async fn hand_overs_inside_a_turn_wait_for_no_replica() {
    const TASKS: u64 = 200;
    let pair = ReplicatedPair::start();
    let locks = connect(&pair.master, super::one_in_time()).await;
    let before = pair.master.calls("wait");
    let tasks = (0..TASKS).map(|_| {
        let lock = locks.lock("a").unwrap();
        tokio::spawn(async move { lock.acquire().await.expect("a lease").release().await })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        wait::soon("all get it", task).await.unwrap().expect("it is held");
    }
    let waits = pair.master.calls("wait") - before;
    assert!((1..TASKS).contains(&waits), "{waits} waits for {TASKS} leases");
}
