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
mod reach;
mod replicas;
mod rights;
mod sentinels;
#[cfg(test)]
pub(super) mod support;
mod version;

use super::{
    Expected, Finding,
    facts::{Facts, Told, Topology},
};

/// What a rule about one server knows.
#[derive(Clone, Copy)]
struct Case<'a> {
    told: &'a Told,
    topology: &'a Topology,
    expected: &'a Expected,
}

/// A rule about one server.
type Rule = fn(Case<'_>) -> Vec<Finding>;

const RULES: [Rule; 14] = [
    version::judge,
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
    let Facts { topology, servers } = facts;
    let mut findings = match topology {
        Topology::Server => Vec::new(),
        Topology::Sentinels(group) => sentinels::judge(group),
        Topology::Cluster(covered) => cluster::judge(covered),
        Topology::Quorum(settings) => quorum::judge(settings, servers),
    };
    for server in servers {
        let of_server = match &server.told {
            Err(error) => vec![reach::judge(error, topology)],
            Ok(told) => {
                let case = Case { told, topology, expected };
                RULES.iter().flat_map(|rule| rule(case)).collect()
            }
        };
        findings.extend(of_server.into_iter().map(|finding| finding.at(&server.place)));
    }
    findings
}
