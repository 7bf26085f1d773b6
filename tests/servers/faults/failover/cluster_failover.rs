use std::thread;

use leasehold_testkit::{LockText, Patience, RedisCluster};

use crate::{
    faults::server::scene::{self, LEASE},
    support::{
        crew::{Crew, Finished, Plan},
        matrix::row,
        unheard, wait,
    },
};

row! {
    cluster_failover: protected, control;
    fault: "a master of a Cluster is killed, with a lease and its grant that its replica has not heard of",
    right: "the holder learns of the loss; the late write is refused; the others go on at the replica",
    control: "a storage that does not compare fences",
}

fn protected() -> String {
    let cluster = RedisCluster::with_replicas();
    let finished = fail_over(&cluster, &Plan::PROTECTED);
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    let [_, replica] = RedisCluster::shard_of(LEASE);
    scene::leaves_nothing(&cluster.servers()[replica]);
    seen
}

fn control() -> String {
    fail_over(&RedisCluster::with_replicas(), &Plan::UNGATED).wrong()
}

fn fail_over(cluster: &RedisCluster, plan: &Plan) -> Finished {
    let [old, new] = RedisCluster::shard_of(LEASE);
    let [master, replica] = [old, new].map(|number| &cluster.servers()[number]);
    let mut crew = Crew::start(plan, &cluster.url());
    crew.work(20);
    replica.cut_off();
    let read = unheard::halt(&mut crew, 0, master, LEASE);
    let last = LockText::of(master, LEASE).last();
    master.kill();
    let promoted = || replica.is_master().then_some(());
    Patience::of(wait::CEILING).until(promoted).expect("the replica takes over");
    let heard = LockText::find(replica, LEASE).map_or(0, |text| text.last());
    assert!(heard != last, "nothing is lost");
    crew.until_above(read);
    thread::sleep(plan.ttl);
    crew.resume(0);
    crew.work(20);
    crew.finish()
}
