use super::Case;
use crate::{
    Finding, Severity,
    Topic::NotExamined,
    facts::{NotRead, ServerTold},
};

/// What the server did not tell, and what is not known for that reason.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let told = case.told;
    let mut findings = Vec::new();
    if let Err(why) = &told.info {
        let mut unknown = shared(told);
        if told.replicas().is_none() {
            unknown.push("replicas in sight");
        }
        unknown.push("whether the last save failed");
        unknown.push("whether the address leads to one master alone");
        unknown.push("whether a server that takes writes still is a master");
        findings.push(find("INFO", "+info", why, &unknown));
    }
    if let Err(why) = &told.settings {
        let mut unknown = shared(told);
        unknown.extend(["appendfsync", "save", "min-replicas-to-write", "min-replicas-max-lag"]);
        if told.node.is_some() {
            unknown.extend(["cluster-node-timeout", "cluster-require-full-coverage"]);
        }
        findings.push(find("CONFIG GET", "+config|get", why, &unknown));
    }
    if told.info.is_ok() && told.settings.is_ok() {
        findings.extend(untold(told));
    }
    if let Some(Err(why)) = &told.node {
        findings.push(find("CLUSTER INFO", "+cluster|info", why, &["the state of the Cluster"]));
    }
    if let Err(why) = &told.timing {
        findings.push(find("TIME", "+time", why, &["the server's clock", "round trips"]));
    }
    findings
}

/// What both `INFO` and `CONFIG GET` tell, if neither did.
fn shared(told: &ServerTold) -> Vec<&'static str> {
    let mut unknown = Vec::new();
    if told.policy().is_none() {
        unknown.push("maxmemory-policy");
    }
    if told.appends().is_none() {
        unknown.push("appendonly");
    }
    unknown
}

/// What neither of them told, although both were answered.
fn untold(told: &ServerTold) -> Option<Finding> {
    let mut unknown = shared(told);
    if told.replicas().is_none() {
        unknown.push("replicas in sight");
    }
    if told.setting("min-replicas-to-write").is_none() {
        unknown.push("min-replicas-to-write");
    }
    let what = format!("neither INFO nor CONFIG GET tells of: {}", unknown.join(", "));
    let cure = "look at it yourself, or ask the operator of the server";
    (!unknown.is_empty()).then(|| Finding::new(Severity::Notice, NotExamined, what, cure))
}

fn find(command: &str, right: &str, why: &NotRead, unknown: &[&str]) -> Finding {
    let what = format!("{command} {why}; not examined: {}", unknown.join(", "));
    let cure = match why {
        NotRead::Denied => format!("grant the Redis user {right}, or look at it yourself"),
        _ => "look at it yourself, or ask the operator of the server".to_owned(),
    };
    Finding::new(Severity::Notice, NotExamined, what, cure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::Fields,
        tests::{Scene, healthy, seen},
    };

    #[test]
    fn what_was_told_is_no_finding() {
        assert_eq!(judge(Scene::of(healthy()).case()), []);
    }

    #[test]
    fn each_command_that_was_denied_is_a_notice() {
        let mut told = healthy();
        told.info = Err(NotRead::Denied);
        told.settings = Err(NotRead::Missing);
        told.timing = Err(NotRead::Silent);
        let found = judge(Scene::of(told).case());
        assert_eq!(seen(&found), [(Severity::Notice, NotExamined, ""); 3]);
        for (one, words) in found.iter().zip([
            ["INFO is denied to this user", "maxmemory-policy", "grant the Redis user +info"],
            ["CONFIG GET does not exist", "min-replicas-to-write", "look at it yourself"],
            ["TIME was not answered", "clock", "look at it yourself"],
        ]) {
            for words in words {
                assert!(one.to_string().contains(words), "{one}: {words}");
            }
        }
    }

    #[test]
    fn what_an_answer_leaves_out_is_a_notice() {
        let mut told = healthy();
        told.info = Ok(Fields::default());
        told.settings = Ok(Fields::default());
        let found = judge(Scene::of(told).case());
        assert_eq!(seen(&found), [(Severity::Notice, NotExamined, "")]);
        let what = "maxmemory-policy, appendonly, replicas in sight, min-replicas-to-write";
        assert!(found[0].what.ends_with(what), "{}", found[0]);
    }

    #[test]
    fn what_another_command_told_is_known() {
        let mut told = healthy();
        told.info = Err(NotRead::Denied);
        let found = judge(Scene::of(told).case());
        assert!(!found[0].what.contains("maxmemory-policy"), "{}", found[0]);
    }
}
