//! Rules about the replicas of a server, and about what it does without them.

use std::time::Duration;

use super::Case;
use crate::{
    Finding,
    Promise::{FencesGrow, OneBeliever},
    Severity::{Danger, Notice, Warning},
    Topic,
    facts::Deployment,
};

/// Whether there are as many replicas as are needed.
pub(super) fn too_few(Case { told, deployment, expected }: Case<'_>) -> Option<Finding> {
    let (replicas, acks) = (told.replicas()?, expected.acks);
    let asked = usize::from(acks.replicas());
    if replicas < asked {
        let what = format!(
            "the master sees {replicas} replicas, and acquires need the acknowledgement of {acks}: none can succeed"
        );
        let cure = "start the replicas that are missing, or ask for fewer acknowledgements";
        return Some(Finding::new(Danger, Topic::Replicas, &[OneBeliever], what, cure));
    }
    if replicas == 0 && deployment.fails_over() {
        let what = "the master has no replica: if it fails, its locks are away until it is back";
        return Some(Finding::new(Warning, Topic::Replicas, &[], what, "start a replica of it"));
    }
    // `CLUSTER FAILOVER` stops the writes of the old master first.
    if (1..replicas).contains(&asked) && !matches!(deployment, Deployment::Cluster(_)) {
        let what = format!(
            "acknowledgements of {asked} of {replicas} replicas: a planned failover (SENTINEL FAILOVER) can make two holders of a lock"
        );
        let cure = "ask for all replicas, or pause the locks first (CLIENT PAUSE 60000 WRITE at the old master)";
        return Some(Finding::new(Notice, Topic::Replicas, &[OneBeliever], what, cure));
    }
    None
}

/// Whether a master that is cut off from its replicas stops, before another one takes over.
pub(super) fn cut_off(Case { told, deployment, .. }: Case<'_>) -> Option<Finding> {
    let settings = told.settings.as_ref().ok()?;
    let least: usize = settings.number("min-replicas-to-write")?;
    let lag: u64 = settings.number("min-replicas-max-lag")?;
    let replicas = told.replicas();
    if least == 0 || lag == 0 {
        // Without replicas nobody takes over; where they cannot be seen, they are where one has to.
        if !replicas.map_or_else(|| deployment.fails_over(), |replicas| replicas > 0) {
            return None;
        }
        let what = format!(
            "min-replicas-to-write is {least} and min-replicas-max-lag is {lag}: a master that is cut off goes on granting locks, while its successor grants the same ones"
        );
        let cure = if replicas == Some(1) {
            "start a second replica, then set min-replicas-to-write to 1 and min-replicas-max-lag to 2: with one replica, locks would stop while it is down, and after a failover"
        } else {
            "set min-replicas-to-write to 1 and min-replicas-max-lag to 2"
        };
        let promises = [OneBeliever, FencesGrow];
        return Some(Finding::new(Warning, Topic::Replicas, &promises, what, cure));
    }
    let good = told.info.as_ref().ok().and_then(|info| info.number("min_slaves_good_slaves"));
    if good.or(replicas).is_some_and(|good| good < least) {
        let what = format!(
            "the server refuses every write: min-replicas-to-write is {least}, and fewer replicas keep up"
        );
        let cure = "start the replicas that are missing, or set min-replicas-to-write lower";
        return Some(Finding::new(Danger, Topic::Replicas, &[], what, cure));
    }
    let lag = Duration::from_secs(lag);
    let down_after = match deployment {
        Deployment::Sentinels(group) => group.watched().filter_map(|one| one.down_after).min(),
        Deployment::Cluster(_) => {
            settings.number("cluster-node-timeout").map(Duration::from_millis)
        }
        Deployment::Server | Deployment::Quorum(_) => None,
    };
    if let Some(down_after) = down_after.filter(|down_after| lag > *down_after) {
        let what = format!(
            "a master that is cut off goes on granting locks for {lag:?} (min-replicas-max-lag), and its successor may begin after {down_after:?}"
        );
        let promises = [OneBeliever, FencesGrow];
        let cure = "set min-replicas-max-lag to fewer seconds than that";
        return Some(Finding::new(Warning, Topic::Replicas, &promises, what, cure));
    }
    if deployment.fails_over() && replicas.is_some_and(|replicas| replicas <= least) {
        let what = format!(
            "the master has no more replicas than min-replicas-to-write asks for ({least}): no lock is granted while one is down, nor after a failover until it is back"
        );
        return Some(Finding::new(Notice, Topic::Replicas, &[], what, "start one more replica"));
    }
    None
}

/// Whether the server would go on taking writes as a replica.
pub(super) fn demoted(Case { told, deployment, .. }: Case<'_>) -> Option<Finding> {
    // On a Cluster a replica redirects its clients to the master.
    let is_cluster = matches!(deployment, Deployment::Cluster(_));
    let is_found = !is_cluster && told.setting("replica-read-only") == Some("no");
    let what = "replica-read-only is no: if the server becomes a replica, as in a failover, it goes on taking \
                writes, and a process that has not heard of it may get a lock there for up to a second";
    let cure = "set replica-read-only to yes";
    is_found.then(|| Finding::new(Danger, Topic::Replicas, &[OneBeliever], what, cure))
}
