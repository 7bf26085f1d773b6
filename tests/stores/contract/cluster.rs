//! The contract, kept on a Cluster of three masters: every script keeps to the slot of its name,
//! and what is published on one master is heard on another.

use std::collections::BTreeSet;

use leasehold_core::{
    FenceSettings,
    store::{AcquireAnswer, Push, RenewAnswer},
};
use leasehold_testkit::{
    RedisCluster,
    cluster::slot_of,
    contract::{CASES, Capability, ClusterSubject, Scene, StoreUnderTest, alice, bob, ttl},
};

leasehold_testkit::contract_suite!(ClusterSubject);

#[tokio::test]
async fn slots_are_those_of_the_server() {
    let master = &RedisCluster::shared().masters()[0];
    for key in ["a", "", "ns:{orders/42}:lease", "{a}b}", "x{", "x{}y", "{{a}", "größe", "{}{b}"]
    {
        let slot: u16 = master.query(&["CLUSTER", "KEYSLOT", key]);
        assert_eq!(slot_of(key), slot, "{key:?}");
    }
}

#[tokio::test]
async fn only_restarts_and_replicas_are_left_out() {
    let subject = ClusterSubject::start(FenceSettings::default()).await;
    let left_out = CASES.iter().filter(|case| !case.is_for(subject.capabilities()));
    for case in left_out {
        let needs = case.needs;
        assert!(matches!(needs, [Capability::Restart | Capability::Replicas]), "{case:?}");
    }
}

#[tokio::test]
async fn what_any_master_publishes_is_heard_and_batches_reach_them_all() {
    let subject = ClusterSubject::start(FenceSettings::default()).await;
    let scene = Scene::new(subject);
    let pushes = scene.pushes(bob(1)).await;
    let mut masters = BTreeSet::new();
    let (mut waiters, mut renewals) = (Vec::new(), Vec::new());
    for number in 1..=30 {
        let calls = scene.calls().about(&format!("name/{number}"));
        masters.insert(RedisCluster::owner_of(&format!("{{{}}}", calls.name())));
        let fence = match calls.acquire(alice(number), ttl(60), None).await.expect("acquire") {
            AcquireAnswer::Granted(granted) => granted.first,
            other => panic!("expected a grant and got {other:?}"),
        };
        renewals.push(calls.renewal(alice(number), fence, ttl(60)));
        waiters.push(calls.waiter(bob(number), ttl(60), None, Scene::beat(number)));
    }
    assert_eq!(masters.len(), usize::from(RedisCluster::MASTERS));
    let queued = scene.heartbeat(&waiters).await;
    assert!(queued.iter().all(|answer| matches!(answer, AcquireAnswer::Queued(_))), "{queued:?}");
    let renewed = scene.renew_all(&renewals).await;
    let is_renewed = |answer: &RenewAnswer| matches!(answer, RenewAnswer::Renewed { .. });
    assert!(renewed.len() == 30 && renewed.iter().all(is_renewed), "{renewed:?}");
    for lease in &renewals {
        let calls = scene.calls().about(lease.name.as_str());
        calls.release(lease.id, lease.fence, None).await.expect("release");
        let Push::Granted { name, id, heartbeat, .. } = pushes.told().await else {
            panic!("a grant was expected")
        };
        assert_eq!(
            (name, id.number(), heartbeat),
            (lease.name.clone(), heartbeat, lease.id.number())
        );
    }
}
