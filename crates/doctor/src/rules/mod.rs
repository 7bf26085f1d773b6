//! The rules: each is a function of what was gathered, and finds one thing or nothing.

mod groups;
mod memory;
mod not_examined;
mod replicas;
mod server;
#[cfg(test)]
mod tests;

use std::time::Duration;

use leasehold_core::{FenceSettings, Replication, StoreError, Ttl};

use super::{
    Finding, Severity, Topic,
    facts::{Deployment, Facts, ServerTold},
};

/// What the settings of a runtime need of its servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// How long a lease lives without renewal.
    pub ttl: Ttl,
    /// How long a grant waits to be taken, and a place for a heartbeat.
    pub claim_window: Duration,
    /// How long one command may take.
    pub command_timeout: Duration,
    /// How fences are made.
    pub fencing: FenceSettings,
    /// Which acknowledgements its grants and renewals wait for.
    pub acks: Replication,
}

/// What a rule about one server knows.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) told: &'a ServerTold,
    pub(super) deployment: &'a Deployment,
    pub(super) expected: &'a Expected,
}

/// A rule about one server.
type Rule = fn(Case<'_>) -> Option<Finding>;

const RULES: [Rule; 26] = [
    server::masters,
    server::connections,
    server::subscription,
    server::acknowledgements,
    server::scripts,
    server::eviction,
    memory::locks,
    server::restart,
    server::disk,
    server::failed_save,
    replicas::too_few,
    replicas::cut_off,
    replicas::demoted,
    groups::full_coverage,
    groups::node_state,
    groups::one_address,
    groups::slots_of_dead,
    groups::slots_of_silent,
    groups::boot_mark,
    server::clock,
    server::latency,
    not_examined::info,
    not_examined::settings,
    not_examined::left_out,
    not_examined::cluster,
    not_examined::time,
];

/// Everything that the rules find; findings about a server name it.
pub(super) fn judge(facts: &Facts, expected: &Expected) -> Vec<Finding> {
    let Facts { deployment, servers } = facts;
    let mut findings = match deployment {
        Deployment::Server => Vec::new(),
        Deployment::Sentinels(group) => groups::sentinels(group),
        Deployment::Cluster(covered) => groups::slots(covered).into_iter().collect(),
        Deployment::Quorum(settings) => groups::quorum(settings, servers),
    };
    for server in servers {
        let of_server = match &server.told {
            Err(error) => vec![not_reached(error, deployment)],
            Ok(told) => {
                let case = Case { told, deployment, expected };
                RULES.iter().filter_map(|rule| rule(case)).collect()
            }
        };
        findings.extend(of_server.into_iter().map(|finding| finding.at(&server.place)));
    }
    findings
}

/// A server to which no connection could be made.
fn not_reached(error: &StoreError, deployment: &Deployment) -> Finding {
    // The other nodes of a quorum go on; that too few are left is a finding of its own.
    let is_one_of_many = matches!(deployment, Deployment::Quorum(_));
    let severity = if is_one_of_many { Severity::Warning } else { Severity::Danger };
    // Behind the address it may say who announces that.
    let told_by = error.endpoint().and_then(|at| Some(at.split_once(", ")?.1));
    let what = match told_by {
        Some(who) => format!("{} ({who})", error.what()),
        None => error.what().to_owned(),
    };
    Finding::new(severity, Topic::Reach, &[], what, error.remedy().to_owned())
}
