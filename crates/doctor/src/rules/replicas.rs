use super::Case;
use crate::{Finding, Promise::OneBeliever, Severity, Topic, facts::Deployment};

/// Whether there are as many replicas as are needed.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, deployment, expected } = case;
    let Some(replicas) = told.replicas() else { return Vec::new() };
    let asked = usize::from(expected.acks.replicas());
    if replicas < asked {
        let acks = expected.acks;
        let what = format!(
            "the master sees {replicas} replicas, and acquires need the acknowledgement of {acks}: none can succeed"
        );
        let cure = "start the replicas that are missing, or ask for fewer acknowledgements";
        return vec![
            Finding::new(Severity::Danger, Topic::Replicas, what, cure).endangers(&[OneBeliever]),
        ];
    }
    if replicas == 0 && deployment.fails_over() {
        let what = "the master has no replica: if it fails, its locks are away until it is back";
        let cure = "start a replica of it";
        return vec![Finding::new(Severity::Warning, Topic::Replicas, what, cure)];
    }
    // `CLUSTER FAILOVER` stops the writes of the old master first.
    if (1..replicas).contains(&asked) && !matches!(deployment, Deployment::Cluster(_)) {
        let what = format!(
            "acknowledgements of {asked} of {replicas} replicas: a planned failover (SENTINEL FAILOVER) can make two holders of a lock"
        );
        let cure = "ask for all replicas, or pause the locks first (CLIENT PAUSE 60000 WRITE at the old master)";
        return vec![
            Finding::new(Severity::Notice, Topic::Replicas, what, cure).endangers(&[OneBeliever]),
        ];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::Deployment,
        tests::{self, Scene, healthy, info, seen},
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
            let findings = judge(scene.case());
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
            judge(scene.case())
        };
        let sentinels = || Deployment::Sentinels(tests::group(3));
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
        told.info = Err(crate::facts::NotRead::Denied);
        assert_eq!(told.replicas(), None);
        told.role = Some(Ok(2));
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
}
