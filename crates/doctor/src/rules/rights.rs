use leasehold_core::{StoreError, StoreErrorKind};

use super::Case;
use crate::{Finding, Promise, Severity, Topic, facts::NotRead};

/// The rights that the settings need, beside those of the scripts.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, expected, .. } = case;
    let mut findings = Vec::new();
    // Silence is told of the scripts already.
    if let Err(error) = &told.subscribes
        && error.is_answer()
    {
        let what = format!("no messages about grants can be received: {}", error.what());
        findings.push(
            Finding::new(Severity::Danger, topic(error), what, error.remedy().to_owned())
                .endangers(&[Promise::NothingHoldsForLong]),
        );
    }
    if let Some(Err(why)) = &told.acks {
        let on_disk = expected.acks.on_disk();
        let (command, grant) = if on_disk {
            ("WAITAOF", "grant the Redis user +waitaof")
        } else {
            ("WAIT", "grant the Redis user +wait")
        };
        let (severity, follows) = if *why == NotRead::Silent {
            // Nothing is known of it; the silence itself is told elsewhere.
            (Severity::Notice, "so it is not known whether acquires can be acknowledged")
        } else {
            (Severity::Danger, "so no acquire can be acknowledged")
        };
        let cure = match why {
            NotRead::Denied => grant,
            NotRead::Silent => "check server and network, and diagnose again",
            NotRead::Missing if on_disk => "use Redis 7.2 or newer, or ask for Replication::wait",
            _ => "use a server that has it, or ask for no acknowledgements",
        };
        let what = format!("{command} {why}, {follows}");
        findings.push(Finding::new(severity, Topic::Rights, what, cure));
    }
    findings
}

/// Whether scripts run, with all commands that they use.
pub(super) fn scripts(case: Case<'_>) -> Vec<Finding> {
    let Err(error) = &case.told.scripts else { return Vec::new() };
    let what = format!("the scripts of locks cannot run: {}", error.what());
    let cure = error.remedy().to_owned();
    vec![Finding::new(Severity::Danger, topic(error), what, cure)]
}

/// A refusal that only an operator can lift is about rights.
fn topic(error: &StoreError) -> Topic {
    if error.kind() == StoreErrorKind::Config { Topic::Rights } else { Topic::Scripts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Scene, disks, healthy, replicas, seen};

    fn refused(kind: StoreErrorKind) -> StoreError {
        StoreError::new(kind, "NOPERM this user", "grant it").as_answer()
    }

    #[test]
    fn a_denied_script_or_subscription_is_a_danger() {
        let mut told = healthy();
        told.scripts = Err(refused(StoreErrorKind::Config));
        told.subscribes = Err(refused(StoreErrorKind::Config));
        let scene = Scene::of(told);
        let found = scripts(scene.case());
        assert_eq!(seen(&found), [(Severity::Danger, Topic::Rights, "")]);
        assert!(found[0].what.contains("NOPERM this user") && found[0].cure == "grant it");
        assert_eq!(seen(&judge(scene.case())), [(Severity::Danger, Topic::Rights, "P8")]);
    }

    #[test]
    fn a_server_that_is_full_is_no_matter_of_rights() {
        let mut told = healthy();
        told.scripts = Err(refused(StoreErrorKind::Definite));
        let found = scripts(Scene::of(told).case());
        assert_eq!(seen(&found), [(Severity::Danger, Topic::Scripts, "")]);
    }

    #[test]
    fn wait_matters_where_acknowledgements_are_asked_for() {
        for (acks, words) in [(replicas(1), "+wait"), (disks(1), "+waitaof")] {
            let mut told = healthy();
            told.acks = Some(Err(NotRead::Denied));
            let scene = Scene::of(told).asking(acks);
            let found = judge(scene.case());
            assert_eq!(seen(&found), [(Severity::Danger, Topic::Rights, "")]);
            assert!(found[0].cure.ends_with(words), "{}", found[0]);
        }
        let mut told = healthy();
        told.acks = Some(Err(NotRead::Missing));
        let found = judge(Scene::of(told).asking(disks(1)).case());
        assert_eq!(seen(&found), [(Severity::Danger, Topic::Rights, "")]);
        assert!(found[0].cure.contains("Redis 7.2"), "{}", found[0]);
        let mut told = healthy();
        told.acks = Some(Err(NotRead::Silent));
        let scene = Scene::of(told).asking(replicas(1));
        assert_eq!(seen(&judge(scene.case())), [(Severity::Notice, Topic::Rights, "")]);
        assert_eq!(judge(Scene::of(healthy()).case()), []);
    }
}
