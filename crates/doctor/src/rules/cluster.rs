use leasehold_core::StoreError;

use super::Case;
use crate::{Finding, Severity, Topic};

/// How many slots a Cluster has.
const SLOTS: u32 = 16_384;

/// Whether every slot has an owner.
pub(super) fn judge(covered: &Result<u32, StoreError>) -> Vec<Finding> {
    let covered = match covered {
        Ok(covered) => *covered,
        Err(error) => {
            let (what, cure) = (error.what().to_owned(), error.remedy().to_owned());
            return vec![Finding::new(Severity::Danger, Topic::Cluster, what, cure)];
        }
    };
    let missing = SLOTS.saturating_sub(covered);
    if missing == 0 {
        return Vec::new();
    }
    let what = format!("{missing} slots have no owner: locks in them cannot be had");
    let cure = "give the slots an owner, as `redis-cli --cluster fix` does";
    vec![Finding::new(Severity::Danger, Topic::Cluster, what, cure)]
}

/// What a node says about its Cluster.
pub(super) fn of_node(case: Case<'_>) -> Vec<Finding> {
    let told = case.told;
    let Some(node) = &told.node else { return Vec::new() };
    let mut findings = Vec::new();
    if told.setting("cluster-require-full-coverage") == Some("yes") {
        let what =
            "cluster-require-full-coverage is yes: while one shard is down, no lock can be had";
        let cure = "set cluster-require-full-coverage to no";
        findings.push(Finding::new(Severity::Warning, Topic::Cluster, what, cure));
    }
    let Ok(node) = node else { return findings };
    if node.info.get("cluster_state").is_some_and(|state| state != "ok") {
        let what = "the node serves no keys: its cluster_state is not ok";
        let cure = "see CLUSTER NODES there for nodes that fail, and slots without an owner";
        findings.push(Finding::new(Severity::Danger, Topic::Cluster, what, cure));
    }
    for (field, severity, what) in [
        ("cluster_slots_fail", Severity::Danger, "belong to a master that is down"),
        ("cluster_slots_pfail", Severity::Warning, "belong to a master that does not answer it"),
    ] {
        let slots: u32 = node.info.number(field).unwrap_or(0);
        if slots > 0 {
            let what = format!("{slots} slots {what}: locks in them wait for its replica");
            let cure = "start the master again, or let a replica of it take over";
            findings.push(Finding::new(severity, Topic::Cluster, what, cure));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use leasehold_core::StoreErrorKind;

    use super::*;
    use crate::{
        facts::ClusterNode,
        tests::{Scene, healthy, info, seen, set},
    };

    #[test]
    fn every_slot_needs_an_owner() {
        assert_eq!(judge(&Ok(16_384)), []);
        let found = judge(&Ok(16_383));
        assert_eq!(seen(&found), [(Severity::Danger, Topic::Cluster, "")]);
        assert!(found[0].what.starts_with("1 slots"));
        let silent = StoreError::new(StoreErrorKind::Definite, "no node", "look");
        assert_eq!(seen(&judge(&Err(silent))), [(Severity::Danger, Topic::Cluster, "")]);
    }

    #[test]
    fn a_node_tells_of_what_is_down() {
        use Severity::{Danger, Warning};
        for (fields, found) in [
            ("cluster_state:ok\r\ncluster_slots_fail:0\r\ncluster_slots_pfail:0", &[][..]),
            ("cluster_state:fail\r\ncluster_slots_fail:0", &[Danger][..]),
            ("cluster_state:ok\r\ncluster_slots_fail:5461", &[Danger][..]),
            ("cluster_state:ok\r\ncluster_slots_pfail:5461", &[Warning][..]),
            ("cluster_state:fail\r\ncluster_slots_fail:9", &[Danger, Danger][..]),
        ] {
            let mut told = healthy();
            told.node = Some(Ok(ClusterNode { info: info(fields), replicas: Some(1) }));
            let findings = of_node(Scene::of(told).case());
            let severities: Vec<_> = findings.iter().map(|one| one.severity).collect();
            assert_eq!(severities, found, "{fields}");
        }
    }

    #[test]
    fn one_shard_should_not_stop_the_others() {
        let mut told = healthy();
        set(&mut told, "cluster-require-full-coverage", "yes");
        let mut scene = Scene::of(told);
        assert_eq!(of_node(scene.case()), [], "it is no node");
        scene.told.node = Some(Ok(ClusterNode::default()));
        let findings = of_node(scene.case());
        assert_eq!(seen(&findings), [(Severity::Warning, Topic::Cluster, "")]);
    }
}
