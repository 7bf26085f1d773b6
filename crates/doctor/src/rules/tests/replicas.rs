use super::find;
use crate::{
    Severity, Topic,
    facts::{ClusterTold, Deployment, Fields, NotRead},
    rules::replicas::{cut_off, demoted, too_few},
    tests::{self, Scene, group, healthy, info, seen, set},
};

#[test]
fn replicas_are_counted_against_the_demand() {
    use Severity::{Danger, Warning};
    for (online, asked, is_cluster, found) in [
        (0, None, false, None),
        (0, None, true, Some((Warning, Topic::Replicas, ""))),
        (0, Some(1), false, Some((Danger, Topic::Replicas, "P1"))),
        (1, Some(2), true, Some((Danger, Topic::Replicas, "P1"))),
        (2, Some(2), true, None),
    ] {
        let mut told = healthy();
        told.info = Ok(info(&replication(online, 0)));
        let mut scene = Scene::of(told);
        if let Some(replicas) = asked {
            scene = scene.asking(tests::replicas(replicas));
        }
        if is_cluster {
            scene.deployment = Deployment::Cluster(Ok(16_384));
        }
        let findings = find([too_few], &scene);
        assert_eq!(seen(&findings), Vec::from_iter(found), "{online} {asked:?}");
    }
}

#[test]
fn one_of_several_is_not_enough_for_a_planned_failover() {
    let findings = |online, asked, deployment| {
        let mut told = healthy();
        told.info = Ok(info(&replication(online, 0)));
        let mut scene = Scene::of(told).asking(tests::replicas(asked));
        scene.deployment = deployment;
        find([too_few], &scene)
    };
    let sentinels = || Deployment::Sentinels(group(3));
    let found = findings(2, 1, sentinels());
    assert_eq!(seen(&found), [(Severity::Notice, Topic::Replicas, "P1")]);
    assert!(found[0].what.starts_with("acknowledgements of 1 of 2 replicas"), "{}", found[0]);
    assert_eq!(seen(&findings(2, 1, Deployment::Server)).len(), 1, "somebody may fail it over");
    assert_eq!(findings(2, 2, sentinels()), [], "all");
    assert_eq!(findings(1, 1, sentinels()), [], "the only one");
    assert_eq!(findings(2, 1, Deployment::Cluster(Ok(16_384))), []);
}

#[test]
fn a_replica_that_loads_does_not_count() {
    let mut told = healthy();
    told.info = Ok(info(&replication(1, 1)));
    assert_eq!(told.replicas(), Some(1));
}

#[test]
fn a_number_of_replicas_that_cannot_be_is_no_work() {
    let mut told = healthy();
    told.info = Ok(info("connected_slaves:18446744073709551615\r\n"));
    assert_eq!(told.replicas(), Some(0));
}

#[test]
fn role_counts_where_info_is_denied() {
    let mut told = healthy();
    told.info = Err(NotRead::Denied);
    assert_eq!(told.replicas(), None);
    told.role = Some(2);
    assert_eq!(told.replicas(), Some(2));
}

#[test]
fn a_replica_that_was_not_heard_for_long_does_not_count() {
    let mut told = healthy();
    let lagging = replication(2, 0).replacen("lag=0", "lag=9", 1);
    told.info = Ok(info(&lagging));
    assert_eq!(told.replicas(), Some(1));
}

fn replication(online: usize, loading: usize) -> String {
    let replica = |number| {
        let state = if number < online { "online" } else { "wait_bgsave" };
        format!("slave{number}:ip=h,port=1,state={state},offset=1,lag=0\r\n")
    };
    let replicas: String = (0..online + loading).map(replica).collect();
    format!("connected_slaves:{}\r\n{replicas}", online + loading)
}

fn one_replica() -> Fields {
    info("connected_slaves:1\r\nslave0:ip=h,port=1,state=online,offset=1,lag=0\r\n")
}

#[test]
fn a_master_with_replicas_has_to_stop_when_it_is_cut_off() {
    use Severity::{Danger, Warning};
    for (least, lag, good, found) in [
        ("0", "10", None, Some((Warning, Topic::Replicas, "P1 P2"))),
        ("1", "0", None, Some((Warning, Topic::Replicas, "P1 P2"))),
        ("1", "2", Some(1), None),
        ("2", "2", Some(1), Some((Danger, Topic::Replicas, ""))),
        ("1", "2", Some(0), Some((Danger, Topic::Replicas, ""))),
        ("1", "10", Some(1), None),
    ] {
        let mut told = healthy();
        set(&mut told, "min-replicas-to-write", least);
        set(&mut told, "min-replicas-max-lag", lag);
        let mut told_info = one_replica();
        if let Some(good) = good {
            told_info.add(&format!("min_slaves_good_slaves:{good}\r\n"));
        }
        told.info = Ok(told_info);
        let findings = find([cut_off], &Scene::of(told));
        assert_eq!(seen(&findings), Vec::from_iter(found), "{least} {lag} {good:?}");
    }
}

#[test]
fn it_has_to_stop_before_another_begins() {
    let told = || {
        let mut told = healthy();
        set(&mut told, "min-replicas-to-write", "1");
        set(&mut told, "min-replicas-max-lag", "10");
        told.info = Ok(one_replica());
        told
    };
    let mut scene = Scene::of(told());
    scene.deployment = Deployment::Sentinels(group(3));
    let findings = find([cut_off], &scene);
    assert_eq!(seen(&findings), [(Severity::Warning, Topic::Replicas, "P1 P2")]);
    assert!(findings[0].what.contains("after 5s"), "{}", findings[0]);

    let mut of_node = told();
    set(&mut of_node, "cluster-node-timeout", "5000");
    // Every server has that setting, and only nodes use it.
    assert_eq!(find([cut_off], &Scene::of(of_node)), []);
    for (timeout, found) in [("5000", Severity::Warning), ("15000", Severity::Notice)] {
        let mut of_node = told();
        set(&mut of_node, "cluster-node-timeout", timeout);
        of_node.node = Some(Ok(ClusterTold::default()));
        let mut scene = Scene::of(of_node);
        scene.deployment = Deployment::Cluster(Ok(16_384));
        let findings = find([cut_off], &scene);
        assert_eq!(findings.len(), 1, "{timeout}");
        assert_eq!(findings[0].severity, found, "{timeout}");
    }
}

#[test]
fn a_replica_that_is_down_or_promoted_is_missed() {
    for (replicas, least, found) in [(1, "1", 1), (2, "1", 0), (2, "2", 1)] {
        let mut told = healthy();
        set(&mut told, "min-replicas-to-write", least);
        set(&mut told, "min-replicas-max-lag", "2");
        let all = (0..replicas)
            .map(|number| format!("slave{number}:ip=h,port=1,state=online,offset=1,lag=0\r\n"));
        told.info =
            Ok(info(&format!("connected_slaves:{replicas}\r\n{}", all.collect::<String>())));
        let mut scene = Scene::of(told);
        scene.deployment = Deployment::Sentinels(group(3));
        let findings = find([cut_off], &scene);
        assert_eq!(findings.len(), found, "{replicas} {least}");
        assert!(findings.iter().all(|one| one.severity == Severity::Notice));
    }
}

#[test]
fn the_cure_for_one_replica_begins_with_a_second_one() {
    let mut told = healthy();
    told.info = Ok(one_replica());
    let findings = find([cut_off], &Scene::of(told));
    assert!(findings[0].cure.starts_with("start a second replica"), "{}", findings[0]);
}

#[test]
fn one_server_alone_needs_none() {
    assert_eq!(find([cut_off], &Scene::of(healthy())), []);
    let mut scene = Scene::of(healthy());
    scene.deployment = Deployment::Cluster(Ok(16_384));
    assert_eq!(find([cut_off], &scene), [], "nobody takes over");
}

#[test]
fn a_server_that_takes_writes_as_a_replica_is_a_danger() {
    for (setting, is_cluster, found) in [
        (None, false, None),
        (Some("yes"), false, None),
        (Some("no"), false, Some((Severity::Danger, Topic::Replicas, "P1"))),
        (Some("no"), true, None),
    ] {
        let mut told = healthy();
        if let Some(value) = setting {
            set(&mut told, "replica-read-only", value);
        }
        let mut scene = Scene::of(told);
        if is_cluster {
            scene.deployment = Deployment::Cluster(Ok(16_384));
        }
        let findings = find([demoted], &scene);
        assert_eq!(seen(&findings), Vec::from_iter(found), "{setting:?} {is_cluster}");
    }
}
