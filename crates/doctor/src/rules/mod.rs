//! The rules: each is a function of what was gathered, and says what it finds.

mod clock;
mod cluster;
mod demoted;
mod eviction;
mod latency;
mod masters;
mod min_replicas;
mod not_examined;
mod persistence;
mod quorum;
mod replicas;
mod rights;
mod sentinels;

use std::time::Duration;

use leasehold_core::{FenceSettings, Replication, StoreError, Ttl};

use super::{
    Finding, Severity, Topic,
    facts::{Deployment, Facts, ServerTold},
};

/// What the settings of a runtime need of its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
type Rule = fn(Case<'_>) -> Vec<Finding>;

const RULES: [Rule; 13] = [
    masters::judge,
    rights::judge,
    rights::scripts,
    eviction::judge,
    persistence::judge,
    replicas::judge,
    min_replicas::judge,
    demoted::judge,
    cluster::of_node,
    quorum::of_node,
    clock::judge,
    latency::judge,
    not_examined::judge,
];

/// Everything that the rules find; findings about a server name it.
pub(super) fn judge(facts: &Facts, expected: &Expected) -> Vec<Finding> {
    let Facts { deployment, servers } = facts;
    let mut findings = match deployment {
        Deployment::Server => Vec::new(),
        Deployment::Sentinels(group) => sentinels::judge(group),
        Deployment::Cluster(covered) => cluster::judge(covered),
        Deployment::Quorum(settings) => quorum::judge(settings, servers),
    };
    for server in servers {
        let of_server = match &server.told {
            Err(error) => vec![not_reached(error, deployment)],
            Ok(told) => {
                let case = Case { told, deployment, expected };
                RULES.iter().flat_map(|rule| rule(case)).collect()
            }
        };
        findings.extend(of_server.into_iter().map(|finding| finding.at(&server.place)));
    }
    findings
}

/// A server to which no connection could be made.
fn not_reached(error: &StoreError, deployment: &Deployment) -> Finding {
    let (what, cure) = (error.what().to_owned(), error.remedy().to_owned());
    // The other nodes of a quorum go on; that too few are left is a finding of its own.
    let is_one_of_many = matches!(deployment, Deployment::Quorum(_));
    let severity = if is_one_of_many { Severity::Warning } else { Severity::Danger };
    Finding::new(severity, Topic::Reach, what, cure)
}
