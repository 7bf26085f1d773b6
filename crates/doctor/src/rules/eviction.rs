use super::Case;
use crate::{
    Finding,
    Promise::{FencesGrow, FirstComeFirstServed, OneBeliever},
    Severity, Topic,
};

/// What the server deletes when its memory is full.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let told = case.told;
    let Some(policy) = told.policy().filter(|policy| *policy != "noeviction") else {
        return Vec::new();
    };
    let victims = if policy.starts_with("allkeys") {
        "leases, places in queues, fence counters and watermarks of gates"
    } else {
        "leases, places in queues and fence counters, because they have a time to live"
    };
    let (severity, when) = match told.memory_limit() {
        Some(0) => (Severity::Warning, "maxmemory has no limit now; with one, a full server"),
        _ => (Severity::Danger, "when its memory is full, the server"),
    };
    let what = format!("maxmemory-policy is {policy}: {when} deletes {victims}");
    let cure = "set maxmemory-policy to noeviction";
    let promises = [OneBeliever, FencesGrow, FirstComeFirstServed];
    vec![Finding::new(severity, Topic::Eviction, what, cure).endangers(&promises)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::Fields,
        tests::{Scene, healthy, info, seen, set},
    };

    #[test]
    fn a_policy_that_evicts_endangers_leases() {
        use Severity::{Danger, Warning};
        for (policy, limit, found) in [
            ("noeviction", "0", None),
            ("noeviction", "1000", None),
            ("allkeys-lru", "1000", Some(Danger)),
            ("allkeys-random", "0", Some(Warning)),
            ("volatile-ttl", "1000", Some(Danger)),
            ("volatile-lru", "0", Some(Warning)),
        ] {
            let mut told = healthy();
            set(&mut told, "maxmemory-policy", policy);
            set(&mut told, "maxmemory", limit);
            let findings = judge(Scene::of(told).case());
            let expected = found.map(|severity| (severity, Topic::Eviction, "P1 P2 P7"));
            assert_eq!(seen(&findings), Vec::from_iter(expected), "{policy} {limit}");
            assert!(findings.iter().all(|one| one.cure.contains("noeviction")));
        }
    }

    #[test]
    fn info_tells_the_policy_where_config_is_denied() {
        let mut told = healthy();
        told.settings = Ok(Fields::default());
        told.info = Ok(info("maxmemory:1000\r\nmaxmemory_policy:volatile-lru\r\n"));
        let findings = judge(Scene::of(told).case());
        assert_eq!(seen(&findings), [(Severity::Danger, Topic::Eviction, "P1 P2 P7")]);
    }
}
