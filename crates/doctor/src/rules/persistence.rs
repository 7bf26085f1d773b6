use std::time::Duration;

use leasehold_core::FencePolicy;

use super::Case;
use crate::{
    Finding,
    Promise::{self, FencesGrow, OneBeliever},
    Severity, Topic,
    facts::{Deployment, ServerTold},
};

const CURE: &str = "set appendonly to yes, with appendfsync everysec or always";

/// What is left of leases and fences after a restart.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, expected, deployment } = case;
    if let Deployment::Quorum(settings) = deployment {
        return of_node(told, settings.stay_out()).into_iter().chain(failed(told)).collect();
    }
    let mut findings = Vec::new();
    let counts = expected.fencing.policy == FencePolicy::Counter;
    let loses = |what: String| {
        // A counter that is lost is not made up for by the clock.
        let (severity, then) = if counts {
            (Severity::Danger, "and fences repeat (FencePolicy::Counter)")
        } else {
            (Severity::Warning, "and new fences come from the clock")
        };
        let promises: &[Promise] = &[OneBeliever, FencesGrow];
        Finding::new(severity, Topic::Persistence, format!("{what}, {then}"), CURE)
            .endangers(promises)
    };
    match told.appends() {
        Some(true) if told.setting("appendfsync") == Some("no") => findings.push(loses(
            "appendfsync is no: when the machine fails, leases of the last half minute are lost"
                .into(),
        )),
        Some(false) => {
            let no_snapshots = told.setting("save").is_some_and(str::is_empty);
            let lost = if no_snapshots {
                "appendonly is no and save is empty: a restart loses every lease and every fence counter"
            } else {
                "appendonly is no: a crash loses every lease and fence counter since the last snapshot"
            };
            findings.push(loses(lost.into()));
            if expected.acks.on_disk() {
                let what = "appendonly is no, so nothing can be acknowledged from a disk";
                findings.push(Finding::new(Severity::Danger, Topic::Persistence, what, CURE));
            }
        }
        _ => {}
    }
    findings.extend(failed(told));
    findings
}

/// Nothing is lost with a node of a quorum: it stays out.
fn of_node(told: &ServerTold, stay_out: Duration) -> Option<Finding> {
    let is_always = told.setting("appendfsync") == Some("always");
    if told.appends() == Some(true) && is_always {
        return None;
    }
    let what = format!(
        "it does not persist every write before it answers: after a restart it stays out for {stay_out:?}"
    );
    let cure = "leave it so if the others go on meanwhile; else appendonly yes, appendfsync always";
    Some(Finding::new(Severity::Notice, Topic::Persistence, what, cure))
}

/// The server refuses writes after it could not save its data, unless it is told not to.
fn failed(told: &ServerTold) -> Option<Finding> {
    let is_failed = |field: &&str| told.info(field).is_some_and(|status| status != "ok");
    let field = ["aof_last_write_status", "rdb_last_bgsave_status"].into_iter().find(is_failed)?;
    let what = format!("the server could not save its data ({field}), and may refuse writes");
    let cure = "see the server's log: its disk may be full, or its folder not writable";
    Some(Finding::new(Severity::Danger, Topic::Persistence, what, cure))
}

#[cfg(test)]
mod tests {
    use leasehold_core::QuorumSettings;

    use super::*;
    use crate::{
        facts::Fields,
        tests::{Scene, disks, healthy, info, seen, set},
    };

    #[test]
    fn what_a_restart_loses() {
        for (appendonly, appendfsync, save, words) in [
            ("yes", "everysec", "", None),
            ("yes", "always", "3600 1", None),
            ("yes", "no", "", Some("appendfsync is no")),
            ("no", "everysec", "", Some("a restart loses every lease")),
            ("no", "everysec", "3600 1", Some("since the last snapshot")),
        ] {
            let mut told = healthy();
            for (name, value) in
                [("appendonly", appendonly), ("appendfsync", appendfsync), ("save", save)]
            {
                set(&mut told, name, value);
            }
            let mut scene = Scene::of(told);
            let found = judge(scene.case());
            let expected = words.map(|_| (Severity::Warning, Topic::Persistence, "P1 P2"));
            assert_eq!(seen(&found), Vec::from_iter(expected));
            assert!(found.iter().all(|one| one.what.contains(words.unwrap_or_default())));
            scene.expected.fencing = scene.expected.fencing.policy(FencePolicy::Counter);
            assert!(judge(scene.case()).iter().all(|one| one.severity == Severity::Danger));
        }
    }

    #[test]
    fn a_node_of_a_quorum_that_loses_data_stays_out() {
        for (appendonly, appendfsync, count) in
            [("yes", "always", 0), ("yes", "everysec", 1), ("no", "always", 1)]
        {
            let mut told = healthy();
            set(&mut told, "appendonly", appendonly);
            set(&mut told, "appendfsync", appendfsync);
            let mut scene = Scene::of(told);
            scene.deployment = Deployment::Quorum(QuorumSettings::default());
            let found = judge(scene.case());
            assert_eq!(found.len(), count, "{appendonly} {appendfsync}");
            assert!(
                found
                    .iter()
                    .all(|one| one.severity == Severity::Notice && one.what.contains("70s"))
            );
        }
    }

    #[test]
    fn info_tells_it_where_config_is_denied() {
        for (enabled, count) in [("1", 0), ("0", 1)] {
            let mut told = healthy();
            told.settings = Ok(Fields::default());
            told.info = Ok(info(&format!("aof_enabled:{enabled}\r\n")));
            assert_eq!(judge(Scene::of(told).case()).len(), count, "{enabled}");
        }
    }

    #[test]
    fn a_save_that_failed_is_told() {
        let mut told = healthy();
        told.info = Ok(info("rdb_last_bgsave_status:err\r\naof_last_write_status:ok\r\n"));
        let found = judge(Scene::of(told).case());
        assert_eq!(seen(&found), [(Severity::Danger, Topic::Persistence, "")]);
        assert!(found[0].what.contains("rdb_last_bgsave_status"));
    }

    #[test]
    fn disks_cannot_acknowledge_without_a_file() {
        let mut told = healthy();
        set(&mut told, "appendonly", "no");
        let scene = Scene::of(told).asking(disks(0));
        let found = judge(scene.case());
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].severity, Severity::Danger);
    }
}
