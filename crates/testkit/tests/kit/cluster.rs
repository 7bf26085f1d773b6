use std::time::Duration;

use leasehold_testkit::{
    Patience,
    cluster::{RedisCluster, slot_of},
};

#[test]
fn a_replica_takes_over_and_the_old_master_comes_back_as_one() {
    let cluster = RedisCluster::with_replicas();
    let [old, replica] = RedisCluster::shard_of("a");
    assert_eq!(cluster.owner_of_now("a"), Some(old));
    cluster.kill(old);
    let owner = || cluster.owner_of_now("a").filter(|owner| *owner != old);
    let owner = Patience::of(Duration::from_secs(60)).until(owner);
    assert_eq!(owner, Some(replica));
    cluster.revive(old);
    cluster.wait_until_whole();
    cluster.fail_over(replica);
    assert_eq!(cluster.owner_of_now("a"), Some(old));
}

#[test]
fn a_slot_moves_with_its_keys() {
    let cluster = RedisCluster::start();
    let (from, slot) = (RedisCluster::owner_of("a"), slot_of("a"));
    let to = (from + 1) % cluster.servers().len();
    let [old, new] = [from, to].map(|number| &cluster.servers()[number]);
    old.command(&["SET", "a", "1"]);
    cluster.begin_migration(slot, to);
    cluster.move_keys(slot);
    let refused = |server: &leasehold_testkit::RedisServer, key: &str| {
        let error = server.try_query::<String>(&["GET", key]).unwrap_err();
        error.code().map(str::to_owned)
    };
    assert_eq!(refused(old, "a").as_deref(), Some("ASK"));
    assert_eq!(refused(new, "a").as_deref(), Some("MOVED"));
    cluster.end_migration(slot);
    assert_eq!(refused(old, "a").as_deref(), Some("MOVED"));
    assert_eq!(new.query::<String>(&["GET", "a"]), "1");
    assert_eq!(cluster.owner_of_now("a"), Some(to));
}

#[test]
fn a_cluster_has_as_many_masters_as_asked_for() {
    for masters in [1, 2] {
        let cluster = RedisCluster::of_masters(masters);
        assert_eq!(cluster.masters().len(), usize::from(masters));
        for key in ["a", "b", "c", "d"] {
            // Any other one would answer `MOVED`.
            let owner = &cluster.masters()[cluster.master_of(key)];
            owner.command(&["SET", key, "1"]);
        }
    }
}
