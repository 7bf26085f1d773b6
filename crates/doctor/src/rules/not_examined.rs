//! What a server did not tell, and what is not known for that reason.

use super::Case;
use crate::{
    Finding, Severity, Topic,
    facts::{NotRead, ServerTold},
};

/// What `INFO` would have told.
pub(super) fn info(Case { told, .. }: Case<'_>) -> Option<Finding> {
    let why = told.info.as_ref().err()?;
    let mut unknown = shared(told);
    unknown.extend(told.replicas().is_none().then_some("replicas in sight"));
    unknown.extend([
        "whether the last save failed",
        "whether the address leads to one master alone",
        "whether a server that takes writes still is a master",
    ]);
    Some(not_read("INFO", "+info", why, &unknown))
}

/// What `CONFIG GET` would have told.
pub(super) fn settings(Case { told, .. }: Case<'_>) -> Option<Finding> {
    let why = told.settings.as_ref().err()?;
    let mut unknown = shared(told);
    unknown.extend(["appendfsync", "save", "min-replicas-to-write", "min-replicas-max-lag"]);
    if told.node.is_some() {
        unknown.extend(["cluster-node-timeout", "cluster-require-full-coverage"]);
    }
    Some(not_read("CONFIG GET", "+config|get", why, &unknown))
}

/// What neither of them told, although both were answered.
pub(super) fn left_out(Case { told, .. }: Case<'_>) -> Option<Finding> {
    if told.info.is_err() || told.settings.is_err() {
        return None;
    }
    let mut unknown = shared(told);
    unknown.extend(told.replicas().is_none().then_some("replicas in sight"));
    let name = "min-replicas-to-write";
    unknown.extend(told.setting(name).is_none().then_some(name));
    let what = format!("neither INFO nor CONFIG GET tells of: {}", unknown.join(", "));
    let is_found = !unknown.is_empty();
    is_found.then(|| Finding::new(Severity::Notice, Topic::NotExamined, &[], what, LOOK))
}

/// What a node of a Cluster would have told.
pub(super) fn cluster(case: Case<'_>) -> Option<Finding> {
    let why = case.told.node.as_ref()?.as_ref().err()?;
    Some(not_read("CLUSTER INFO", "+cluster|info", why, &["the state of the Cluster"]))
}

/// What `TIME` would have told.
pub(super) fn time(case: Case<'_>) -> Option<Finding> {
    let why = case.told.timing.as_ref().err()?;
    Some(not_read("TIME", "+time", why, &["the server's clock", "round trips"]))
}

/// What both `INFO` and `CONFIG GET` tell, if neither did.
fn shared(told: &ServerTold) -> Vec<&'static str> {
    let policy = told.policy().is_none().then_some("maxmemory-policy");
    policy.into_iter().chain(told.appends().is_none().then_some("appendonly")).collect()
}

const LOOK: &str = "look at it yourself, or ask the operator of the server";

fn not_read(command: &str, right: &str, why: &NotRead, unknown: &[&str]) -> Finding {
    let what = format!("{command} {why}; not examined: {}", unknown.join(", "));
    let cure = match why {
        NotRead::Denied => format!("grant the Redis user {right}, or look at it yourself"),
        _ => LOOK.to_owned(),
    };
    Finding::new(Severity::Notice, Topic::NotExamined, &[], what, cure)
}
