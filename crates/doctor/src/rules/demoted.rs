use super::Case;
use crate::{Finding, Promise::OneBeliever, Severity, Topic, facts::Deployment};

/// Whether the server would go on taking writes as a replica.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    // On a Cluster a replica redirects its clients to the master.
    let is_cluster = matches!(case.deployment, Deployment::Cluster(_));
    if is_cluster || case.told.setting("replica-read-only") != Some("no") {
        return Vec::new();
    }
    let what = "replica-read-only is no: if the server becomes a replica, as in a failover, it goes on taking \
                writes, and a process that has not heard of it may get a lock there for up to a second";
    let cure = "set replica-read-only to yes";
    vec![Finding::new(Severity::Danger, Topic::Replicas, what, cure).endangers(&[OneBeliever])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Scene, healthy, seen, set};

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
            let findings = judge(scene.case());
            assert_eq!(seen(&findings), Vec::from_iter(found), "{setting:?} {is_cluster}");
        }
    }
}
