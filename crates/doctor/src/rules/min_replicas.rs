use std::time::Duration;

use super::Case;
use crate::{
    Finding,
    Promise::{FencesGrow, OneBeliever},
    Severity, Topic,
    facts::Deployment,
};

/// Whether a master that is cut off from its replicas stops, before another one takes over.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, deployment, .. } = case;
    let Ok(settings) = &told.settings else { return Vec::new() };
    let (Some(least), Some(lag)) =
        (settings.number("min-replicas-to-write"), settings.number("min-replicas-max-lag"))
    else {
        return Vec::new();
    };
    let find = |severity, what, cure| {
        vec![
            Finding::new(severity, Topic::Replicas, what, cure)
                .endangers(&[OneBeliever, FencesGrow]),
        ]
    };
    // Without replicas nobody takes over; where they cannot be seen, they are where one has to.
    let has_successor =
        told.replicas().map_or_else(|| deployment.fails_over(), |replicas| replicas > 0);
    if least == 0 || lag == 0 {
        if !has_successor {
            return Vec::new();
        }
        let what = format!(
            "min-replicas-to-write is {least} and min-replicas-max-lag is {lag}: a master that is cut off goes on granting locks, while its successor grants the same ones"
        );
        let cure = if told.replicas() == Some(1) {
            "start a second replica, then set min-replicas-to-write to 1 and min-replicas-max-lag to 2: with one replica, locks would stop while it is down, and after a failover"
        } else {
            "set min-replicas-to-write to 1 and min-replicas-max-lag to 2"
        };
        return find(Severity::Warning, what, cure.to_owned());
    }
    let good = told.info.as_ref().ok().and_then(|info| info.number("min_slaves_good_slaves"));
    if good.or_else(|| told.replicas()).is_some_and(|good| good < least) {
        let what = format!(
            "the server refuses every write: min-replicas-to-write is {least}, and fewer replicas keep up"
        );
        let cure = "start the replicas that are missing, or set min-replicas-to-write lower";
        return vec![Finding::new(Severity::Danger, Topic::Replicas, what, cure)];
    }
    let lag = Duration::from_secs(lag);
    let node_timeout = || {
        let setting = told.node.is_some().then(|| settings.number("cluster-node-timeout"));
        setting.flatten().map(Duration::from_millis)
    };
    let by_sentinels = match deployment {
        Deployment::Sentinels(group) => {
            group.watched().filter_map(|(_, watched)| watched.down_after).min()
        }
        _ => None,
    };
    let down_after = by_sentinels.or_else(node_timeout);
    if let Some(down_after) = down_after.filter(|down_after| lag > *down_after) {
        let what = format!(
            "a master that is cut off goes on granting locks for {lag:?} (min-replicas-max-lag), and its successor may begin after {down_after:?}"
        );
        let cure = "set min-replicas-max-lag to fewer seconds than that".to_owned();
        return find(Severity::Warning, what, cure);
    }
    if deployment.fails_over() && told.replicas().is_some_and(|replicas| replicas <= least) {
        let what = format!(
            "the master has no more replicas than min-replicas-to-write asks for ({least}): no lock is granted while one is down, nor after a failover until it is back"
        );
        let cure = "start one more replica";
        return vec![Finding::new(Severity::Notice, Topic::Replicas, what, cure)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::{ClusterNode, Fields},
        tests::{Scene, group, healthy, info, seen, set},
    };

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
            let findings = judge(Scene::of(told).case());
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
        let findings = judge(scene.case());
        assert_eq!(seen(&findings), [(Severity::Warning, Topic::Replicas, "P1 P2")]);
        assert!(findings[0].what.contains("after 5s"), "{}", findings[0]);

        let mut of_node = told();
        set(&mut of_node, "cluster-node-timeout", "5000");
        // Every server has that setting, and only nodes use it.
        assert_eq!(judge(Scene::of(of_node).case()), []);
        for (timeout, found) in [("5000", Severity::Warning), ("15000", Severity::Notice)] {
            let mut of_node = told();
            set(&mut of_node, "cluster-node-timeout", timeout);
            of_node.node = Some(Ok(ClusterNode::default()));
            let mut scene = Scene::of(of_node);
            scene.deployment = Deployment::Cluster(Ok(16_384));
            let findings = judge(scene.case());
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
            let findings = judge(scene.case());
            assert_eq!(findings.len(), found, "{replicas} {least}");
            assert!(findings.iter().all(|one| one.severity == Severity::Notice));
        }
    }

    #[test]
    fn the_cure_for_one_replica_begins_with_a_second_one() {
        let mut told = healthy();
        told.info = Ok(one_replica());
        let findings = judge(Scene::of(told).case());
        assert!(findings[0].cure.starts_with("start a second replica"), "{}", findings[0]);
    }

    #[test]
    fn one_server_alone_needs_none() {
        assert_eq!(judge(Scene::of(healthy()).case()), []);
        let mut scene = Scene::of(healthy());
        scene.deployment = Deployment::Cluster(Ok(16_384));
        assert_eq!(judge(scene.case()), [], "nobody takes over");
    }
}
