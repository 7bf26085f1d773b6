//! Rules about a Cluster, a quorum and Sentinels, and about their members.

use std::{collections::BTreeSet, time::Duration};

use leasehold_core::{QuorumSettings, StoreError};
use leasehold_quorum::majority;
use leasehold_redis::{DISAGREEING, JOIN, ONE_EACH, UNKNOWN_NAME};

use super::Case;
use crate::{
    ClockOffset, Finding,
    Promise::{FencesGrow, OneBeliever},
    Severity::{self, Danger, Notice, Warning},
    Topic,
    facts::{Deployment, Mark, NamedMaster, NotRead, SentinelsTold, ServerFacts, ServerTold},
};

/// How many slots a Cluster has.
const SLOTS: usize = 16_384;

/// Whether every slot of a Cluster has an owner.
pub(super) fn slots(covered: &Result<usize, StoreError>) -> Option<Finding> {
    let missing = match covered {
        Ok(covered) => SLOTS.saturating_sub(*covered),
        Err(error) => return Some(Finding::of_error(Danger, Topic::Cluster, error)),
    };
    let what = format!("{missing} slots have no owner: locks in them cannot be had");
    // `fix` would give all of them to the one node that is asked.
    let cure = if missing == SLOTS {
        JOIN
    } else {
        "give the slots an owner, as `redis-cli --cluster fix` does"
    };
    (missing > 0).then(|| Finding::new(Danger, Topic::Cluster, &[], what, cure))
}

/// Whether one shard that is down stops the others.
pub(super) fn full_coverage(Case { told, .. }: Case<'_>) -> Option<Finding> {
    let is_found =
        told.node.is_some() && told.setting("cluster-require-full-coverage") == Some("yes");
    let what = "cluster-require-full-coverage is yes: while one shard is down, no lock can be had";
    let cure = "set cluster-require-full-coverage to no";
    is_found.then(|| Finding::new(Warning, Topic::Cluster, &[], what, cure))
}

/// Whether a node of a Cluster serves keys.
pub(super) fn node_state(case: Case<'_>) -> Option<Finding> {
    let node = case.told.node.as_ref()?.as_ref().ok()?;
    let is_found = node.info.get("cluster_state")? != "ok";
    let what = "the node serves no keys: its cluster_state is not ok";
    let cure = "see CLUSTER NODES there for nodes that fail, and slots without an owner";
    is_found.then(|| Finding::new(Danger, Topic::Cluster, &[], what, cure))
}

/// Whether each node has an address of its own. Of masters that share one, no server is examined.
pub(super) fn one_address(case: Case<'_>) -> Option<Finding> {
    let what = case.told.node.as_ref()?.as_ref().ok()?.shared.clone()?;
    Some(Finding::new(Danger, Topic::Cluster, &[], what, ONE_EACH))
}

/// Whether a master of the Cluster is down, as a node knows.
pub(super) fn slots_of_dead(case: Case<'_>) -> Option<Finding> {
    down(case, "cluster_slots_fail", Danger, "is down")
}

/// Whether a node misses answers of a master of the Cluster.
pub(super) fn slots_of_silent(case: Case<'_>) -> Option<Finding> {
    down(case, "cluster_slots_pfail", Warning, "does not answer it")
}

fn down(case: Case<'_>, field: &str, severity: Severity, how: &str) -> Option<Finding> {
    let node = case.told.node.as_ref()?.as_ref().ok()?;
    let slots: u32 = node.info.number(field)?;
    let what =
        format!("{slots} slots belong to a master that {how}: locks in them wait for its replica");
    let cure = "start the master again, or let a replica of it take over";
    (slots > 0).then(|| Finding::new(severity, Topic::Cluster, &[], what, cure))
}

/// How many nodes of a quorum decide, and whether their clocks agree.
pub(super) fn quorum(settings: &QuorumSettings, servers: &[ServerFacts]) -> Vec<Finding> {
    same(servers).chain(too_few(servers)).chain(apart(settings, servers)).collect()
}

/// The servers to which several addresses of a quorum lead.
fn same(servers: &[ServerFacts]) -> impl Iterator<Item = Finding> + '_ {
    servers.iter().enumerate().filter_map(|(number, server)| {
        let other = earlier(servers, number)?;
        let what =
            "these addresses lead to the same server: it counts once, and no process connects";
        let cure = "name 3, 5 or 7 servers, each of them once";
        let found = Finding::new(Danger, Topic::Quorum, &[], what, cure);
        Some(found.at(&other.place).at(&server.place))
    })
}

/// The server before this one that is the same one.
fn earlier(servers: &[ServerFacts], number: usize) -> Option<&ServerFacts> {
    let runs = |server: &'_ ServerFacts| server.told.as_ref().ok().map(|told| told.runs.clone());
    let own = runs(&servers[number])?;
    let is_same = |other: &&ServerFacts| runs(other).is_some_and(|runs| !runs.is_disjoint(&own));
    servers[..number].iter().find(is_same)
}

/// Why a node tells nobody its run; silence passes.
fn hides_its_run(told: &ServerTold) -> Option<&NotRead> {
    told.info.as_ref().err().filter(|why| **why != NotRead::Silent)
}

fn too_few(servers: &[ServerFacts]) -> Option<Finding> {
    let is_out = |told: &ServerTold| {
        matches!(told.mark, Some(Mark::Missing | Mark::Out(_)))
            || hides_its_run(told).is_some()
            || told.scripts.is_err()
    };
    let counts = |(number, server): &(usize, &ServerFacts)| {
        server.told.as_ref().is_ok_and(|told| !is_out(told)) && earlier(servers, *number).is_none()
    };
    let (counting, nodes) = (servers.iter().enumerate().filter(counts).count(), servers.len());
    let needed = majority(nodes);
    let (severity, then) = match counting.checked_sub(needed) {
        None => (Danger, format!("that is no majority, and no lock is granted until {needed} do")),
        Some(spare) => (Warning, format!("{spare} more may fail")),
    };
    let what = format!("{counting} of {nodes} nodes of the quorum answer and count: {then}");
    let cure = "do what is said of each of the others; one that is new or has lost data counts again by itself";
    (counting < nodes).then(|| Finding::new(severity, Topic::Quorum, &[], what, cure))
}

/// The two clocks that are farthest apart, if that is more than the settings allow.
fn apart(settings: &QuorumSettings, servers: &[ServerFacts]) -> Option<Finding> {
    // How far each clock is ahead of ours, in nanoseconds, and how wrong that can be.
    let clock = |server: &ServerFacts| {
        let timing = server.told.as_ref().ok()?.timing.as_ref().ok()?;
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let offset = match timing.offset {
            ClockOffset::Ahead(by) => nanos(by),
            ClockOffset::Behind(by) => -nanos(by),
        };
        Some((offset, nanos(timing.margin)))
    };
    let clocks = || servers.iter().filter_map(|server| Some((&server.place, clock(server)?)));
    let (ahead, (most, margin)) = clocks().max_by_key(|(_, (offset, margin))| offset - margin)?;
    let (behind, (least, other)) = clocks().min_by_key(|(_, (offset, margin))| offset + margin)?;
    let apart = ((most - margin) - (least + other)).max(0) / 1_000_000;
    let apart = Duration::from_millis(u64::try_from(apart).unwrap_or(u64::MAX));
    let tolerance = settings.clock_tolerance();
    let what = format!(
        "the clock of {ahead} is {apart:?} ahead of that of {behind}, more than the tolerance {tolerance:?} of the quorum: fences cost a second round trip, and may repeat if a node loses its data"
    );
    let cure = "let NTP slew the clocks of all nodes, and correct the wrong one";
    (apart > tolerance).then(|| Finding::new(Warning, Topic::Clock, &[FencesGrow], what, cure))
}

/// Whether a node of a quorum votes, and whether a server is one that is used as such.
pub(super) fn boot_mark(Case { told, deployment, .. }: Case<'_>) -> Option<Finding> {
    let Deployment::Quorum(settings) = deployment else { return used_alone(told) };
    if let Some(why) = hides_its_run(told) {
        let what = format!(
            "INFO {why}, so nobody can tell whether the node came back without its data: it does not count"
        );
        let cure = if *why == NotRead::Denied {
            "grant the Redis user +info"
        } else {
            "let the node answer INFO, or use another server"
        };
        return Some(Finding::new(Warning, Topic::Quorum, &[], what, cure));
    }
    let what = match told.mark? {
        Mark::Counts => return None,
        Mark::Out(rest) => format!(
            "it is new or has lost data: it stays out, and counts again in {:.1} s",
            rest.as_secs_f64()
        ),
        Mark::Missing => format!(
            "it has no boot mark, so it is new or has lost its data: it counts {:?} after a process has connected",
            settings.stay_out()
        ),
    };
    let cure =
        "wait until no lease can be left that it has forgotten, and restart no other node before";
    Some(Finding::new(Warning, Topic::Quorum, &[], what, cure))
}

/// A node of a quorum under an address of its own: neither side knows the locks of the other.
fn used_alone(told: &ServerTold) -> Option<Finding> {
    told.mark.filter(|mark| *mark != Mark::Missing)?;
    let what = "the namespace has the boot mark of a quorum: this is a node of a quorum, whose locks nobody \
                sees by this address";
    let cure = "connect with redis+quorum:// and all of its nodes, or choose another namespace; if the \
                quorum is no more, delete the key <namespace>:boot";
    Some(Finding::new(Warning, Topic::Quorum, &[OneBeliever], what, cure))
}

const SENTINELS: Topic = Topic::Sentinels;

/// Whether the Sentinels answer, agree, and can fail over.
pub(super) fn sentinels(group: &SentinelsTold) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &group.all {
        let of_one = match &one.told {
            Err(error) => vec![silent(group, error)],
            // Told once, of all of them.
            Ok(None) if knows_no_master(group) => Vec::new(),
            Ok(None) => {
                let what = format!("the Sentinel knows no master named `{}`", group.name);
                vec![names_another(what)]
            }
            Ok(Some(named)) => of_sentinel(group, named),
        };
        findings.extend(of_one.into_iter().map(|finding| finding.at(&one.place)));
    }
    if group.master.is_none() {
        let (answered, listed) = (group.answers().count(), group.all.len());
        let (what, cure) = if knows_no_master(group) {
            (format!("the Sentinels know no master named `{}`", group.name), UNKNOWN_NAME)
        } else {
            let most = answered * 2 > listed;
            let cure = if most { DISAGREEING } else { "mend the Sentinels that tell nothing" };
            let what =
                format!("no master is named by most Sentinels: {answered} of {listed} answered");
            (what, cure)
        };
        findings.push(Finding::new(Danger, SENTINELS, &[], what, cure));
    }
    numbers(group, &mut findings);
    findings
}

/// Whether most Sentinels answer, and none of them knows a master of the name.
fn knows_no_master(group: &SentinelsTold) -> bool {
    group.answers().count() * 2 > group.all.len() && group.answers().flatten().next().is_none()
}

/// A Sentinel that does not answer.
fn silent(group: &SentinelsTold, error: &StoreError) -> Finding {
    // Without most of them no master is believed anew.
    let is_enough = group.answers().count() * 2 > group.all.len();
    let severity = if is_enough { Warning } else { Danger };
    let what = format!("the Sentinel tells nothing: {}", error.what());
    Finding::new(severity, SENTINELS, &[], what, error.remedy().to_owned())
}

fn names_another(what: String) -> Finding {
    let cure = "have it watch the same master as the others (SENTINEL MONITOR), or take it out of the address";
    Finding::new(Warning, SENTINELS, &[OneBeliever], what, cure)
}

/// What a Sentinel tells of its master.
fn of_sentinel(group: &SentinelsTold, named: &NamedMaster) -> Vec<Finding> {
    let NamedMaster { master, watched } = named;
    let mut findings = Vec::new();
    if group.master.as_ref().is_some_and(|most| most != master) {
        let what = format!("the Sentinel names {master} as the master, and most do not");
        findings.push(names_another(what));
    }
    match watched {
        Ok(watched) if watched.is_down => {
            let what = "the Sentinel takes the master for dead";
            let cure = "see its log, and whether it reaches the master";
            findings.push(Finding::new(Warning, SENTINELS, &[], what, cure));
        }
        Ok(_) => {}
        Err(why) => {
            let what = format!(
                "SENTINEL MASTER {why}; not examined: the quorum of the Sentinel, how many others and replicas it knows"
            );
            let cure = "grant the user of the Sentinels +sentinel|master, or look at it yourself";
            findings.push(Finding::new(Notice, Topic::NotExamined, &[], what, cure));
        }
    }
    findings
}

/// How many Sentinels and replicas there are, and how many have to agree.
fn numbers(group: &SentinelsTold, findings: &mut Vec<Finding>) {
    let mut add = |severity, promises: &[_], what: String, cure| {
        findings.push(Finding::new(severity, SENTINELS, promises, what, cure));
    };
    let listed = group.all.len();
    let known = group.watched().filter_map(|one| Some(one.others?.saturating_add(1))).max();
    if let Some(known) = known.filter(|known| *known > listed) {
        let what = format!(
            "the address lists {listed} of {known} Sentinels: most of the listed ones are believed"
        );
        add(Warning, &[OneBeliever], what, "list all Sentinels in the address");
    }
    let most = known.unwrap_or(0).max(listed);
    if most < 3 {
        let what = format!("there are {most} Sentinels: if one is down, nothing is decided");
        add(Warning, &[], what, "run three Sentinels at least, on machines of their own");
    }
    let quorums: BTreeSet<_> = group.watched().filter_map(|one| one.quorum).collect();
    if quorums.len() > 1 {
        let what = format!("the Sentinels have different quorums: {quorums:?}");
        add(Warning, &[], what, "set the same quorum on each (SENTINEL SET … quorum)");
    }
    if let (Some(quorum), Some(known)) = (quorums.last(), known)
        && *quorum > known
    {
        let what =
            format!("the quorum is {quorum}, and there are {known} Sentinels: none fails over");
        add(Danger, &[], what, "set the quorum to more than half of the Sentinels");
    }
    if group.watched().filter_map(|one| one.replicas).max() == Some(0) {
        let what = "the Sentinels know no replica of the master: they cannot fail over".to_owned();
        add(Warning, &[], what, "start a replica of the master");
    }
}
