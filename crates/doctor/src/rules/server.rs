//! Rules about one server: its address, rights, memory, disk and clock, and the way to it.

use std::time::Duration;

use leasehold_core::{FencePolicy, StoreError, StoreErrorKind};
use leasehold_redis::{NOT_SUBSCRIBED, ONE_ADDRESS};

use super::Case;
use crate::{
    Finding,
    Promise::{
        ACallEnds, FencesGrow, FirstComeFirstServed, LossIsTold, NothingHoldsForLong, OneBeliever,
    },
    Severity::{Danger, Notice, Warning},
    Topic,
    facts::{Connections, Deployment, NotRead},
};

/// Whether all connections to the address lead to the same master.
pub(super) fn masters(case: Case<'_>) -> Option<Finding> {
    let runs: Vec<&str> = case.told.runs.iter().map(String::as_str).collect();
    let what = format!(
        "the address leads to {} masters that know nothing of each other (run_id {}): each of them grants every lock",
        runs.len(),
        runs.join(", ")
    );
    let is_found = runs.len() > 1;
    is_found.then(|| Finding::new(Danger, Topic::Reach, &[OneBeliever], what, ONE_ADDRESS))
}

/// Whether messages about grants may be received.
pub(super) fn subscription(case: Case<'_>) -> Option<Finding> {
    let error = case.told.subscribes.as_ref().err()?;
    let (topic, cure) = if error.is_answer() {
        (refused(error), error.remedy().to_owned())
    } else if case.told.scripts.is_ok() {
        (Topic::Reach, NOT_SUBSCRIBED.to_owned())
    } else {
        // Silence is told of the scripts already.
        return None;
    };
    let what = format!("no messages about grants can be received: {}", error.what());
    Some(Finding::new(Danger, topic, &[NothingHoldsForLong], what, cure))
}

/// What a lock runtime has at each server: for commands, for renewals, for messages.
const NEEDED: usize = 3;

/// Whether as many connections can be made as lock runtimes need.
pub(super) fn connections(case: Case<'_>) -> Option<Finding> {
    let Connections { made, failed } = &case.told.connections;
    let error = failed.as_ref()?;
    let severity = if *made < NEEDED { Danger } else { Warning };
    let what = format!(
        "of {} connections that were made at one time, the server took {made}, and a lock runtime needs {NEEDED}: {}",
        Connections::TRIED,
        error.what()
    );
    Some(Finding::new(severity, Topic::Reach, &[], what, error.remedy().to_owned()))
}

/// Whether the acknowledgements that are asked for may be waited for.
pub(super) fn acknowledgements(case: Case<'_>) -> Option<Finding> {
    let why = case.told.acks.as_ref()?.as_ref().err()?;
    let on_disk = case.expected.acks.on_disk();
    let (command, grant) = if on_disk {
        ("WAITAOF", "grant the Redis user +waitaof")
    } else {
        ("WAIT", "grant the Redis user +wait")
    };
    let (severity, follows) = if *why == NotRead::Silent {
        // Nothing is known of it; the silence itself is told elsewhere.
        (Notice, "so it is not known whether acquires can be acknowledged")
    } else {
        (Danger, "so no acquire can be acknowledged")
    };
    let cure = match why {
        NotRead::Denied => grant,
        NotRead::Silent => "check server and network, and diagnose again",
        NotRead::Missing if on_disk => "use Redis 7.2 or newer, or ask for Replication::wait",
        _ => "use a server that has it, or ask for no acknowledgements",
    };
    Some(Finding::new(severity, Topic::Rights, &[], format!("{command} {why}, {follows}"), cure))
}

/// Whether scripts run, with all commands that they use.
pub(super) fn scripts(case: Case<'_>) -> Option<Finding> {
    let error = case.told.scripts.as_ref().err()?;
    let what = format!("the scripts of locks cannot run: {}", error.what());
    Some(Finding::new(Danger, refused(error), &[], what, error.remedy().to_owned()))
}

/// A refusal that only an operator can lift is about rights.
fn refused(error: &StoreError) -> Topic {
    if error.kind() == StoreErrorKind::Config { Topic::Rights } else { Topic::Scripts }
}

/// What the server deletes when its memory is full.
pub(super) fn eviction(case: Case<'_>) -> Option<Finding> {
    let policy = case.told.policy().filter(|policy| *policy != "noeviction")?;
    let victims = if policy.starts_with("allkeys") {
        "leases, places in queues, fence counters and watermarks of gates"
    } else {
        "leases, places in queues and fence counters, because they have a time to live"
    };
    let (severity, when) = match case.told.memory_limit() {
        Some(0) => (Warning, "maxmemory has no limit now; with one, a full server"),
        _ => (Danger, "when its memory is full, the server"),
    };
    let what = format!("maxmemory-policy is {policy}: {when} deletes {victims}");
    let promises = [OneBeliever, FencesGrow, FirstComeFirstServed];
    let cure = "set maxmemory-policy to noeviction";
    Some(Finding::new(severity, Topic::Eviction, &promises, what, cure))
}

const APPEND: &str = "set appendonly to yes, with appendfsync everysec or always";

/// What is left of leases and fences after a restart.
pub(super) fn restart(Case { told, deployment, expected }: Case<'_>) -> Option<Finding> {
    let (appends, fsync) = (told.appends(), told.setting("appendfsync"));
    if let Deployment::Quorum(settings) = deployment {
        // Nothing is lost with a node of a quorum: it stays out.
        let what = format!(
            "it does not persist every write before it answers: after a restart it stays out for {:?}",
            settings.stay_out()
        );
        let cure =
            "leave it so if the others go on meanwhile; else appendonly yes, appendfsync always";
        let persists = appends == Some(true) && fsync == Some("always");
        return (!persists).then(|| Finding::new(Notice, Topic::Persistence, &[], what, cure));
    }
    let lost = match appends? {
        true if fsync == Some("no") => {
            "appendfsync is no: when the machine fails, leases of the last half minute are lost"
        }
        true => return None,
        false if told.setting("save").is_some_and(str::is_empty) => {
            "appendonly is no and save is empty: a restart loses every lease and every fence counter"
        }
        false => {
            "appendonly is no: a crash loses every lease and fence counter since the last snapshot"
        }
    };
    // A counter that is lost is not made up for by the clock.
    let (severity, then) = if expected.fencing.policy == FencePolicy::Counter {
        (Danger, "and fences repeat (FencePolicy::Counter)")
    } else {
        (Warning, "and new fences come from the clock")
    };
    let promises = [OneBeliever, FencesGrow];
    let what = format!("{lost}, {then}");
    Some(Finding::new(severity, Topic::Persistence, &promises, what, APPEND))
}

/// Whether writes can be acknowledged from a disk, where that is asked for.
pub(super) fn disk(Case { told, expected, .. }: Case<'_>) -> Option<Finding> {
    let what = "appendonly is no, so nothing can be acknowledged from a disk";
    let is_found = told.appends() == Some(false) && expected.acks.on_disk();
    is_found.then(|| Finding::new(Danger, Topic::Persistence, &[], what, APPEND))
}

/// The server refuses writes after it could not save its data, unless it is told not to.
pub(super) fn failed_save(case: Case<'_>) -> Option<Finding> {
    let is_failed = |field: &&str| case.told.info(field).is_some_and(|status| status != "ok");
    let field = ["aof_last_write_status", "rdb_last_bgsave_status"].into_iter().find(is_failed)?;
    let what = format!("the server could not save its data ({field}), and may refuse writes");
    let cure = "see the server's log: its disk may be full, or its folder not writable";
    Some(Finding::new(Danger, Topic::Persistence, &[], what, cure))
}

/// Warns if the server's clock shows another time than ours. No promise compares the two. But if the
/// server's clock is the wrong one, its correction is a step.
pub(super) fn clock(Case { told, expected, .. }: Case<'_>) -> Option<Finding> {
    let timing = told.timing.as_ref().ok()?;
    let (offset, fencing) = (timing.offset, &expected.fencing);
    let off = offset.by().saturating_sub(timing.margin);
    // Clocks that are kept by NTP never differ by so much.
    if off < Duration::from_secs(1) {
        return None;
    }
    // A watermark that is farther ahead of the server's clock is ignored.
    let most = Duration::from_secs(24 * 60 * 60).min(*fencing.retentions().start());
    let (severity, then) = if off >= most && fencing.policy != FencePolicy::Counter {
        let then = "if its data is lost, fences may repeat, because processes' watermarks that far from the clock do not count, and counters may have expired";
        (Danger, then)
    } else {
        let then = "if it is the wrong one and is set right in one step, leases end early, or fences that come from the clock repeat";
        (Warning, then)
    };
    let what = format!("the server's clock is {offset} of this process: {then}");
    let cure = "let NTP slew both clocks, and correct the wrong one";
    Some(Finding::new(severity, Topic::Clock, &[OneBeliever, FencesGrow], what, cure))
}

/// How many round trips fit into the time of a command at least: for a server that is busy now and
/// then, and for a connection that is made.
const TRIPS_OF_A_COMMAND: u32 = 4;

/// How many round trips fit into a claim window at least.
const TRIPS_OF_A_WINDOW: u32 = 5;

/// Whether the server answers fast enough for the times that were set.
pub(super) fn latency(Case { told, expected, .. }: Case<'_>) -> Option<Finding> {
    let trip = told.timing.as_ref().ok()?.median;
    let ttl = expected.ttl.get();
    // A renewal has so long for its answer.
    let (renewal, command) = (ttl / 6, expected.command_timeout.min(ttl / 2));
    let (name, least) = if renewal < command {
        ("a renewal, a sixth of the ttl", renewal)
    } else {
        ("a command", command)
    };
    let window = expected.claim_window.min(ttl);
    let time = format!("the time of {name}, is {least:?}");
    let (severity, limit, then) = if trip >= least {
        (Danger, time, "leases are lost, and calls fail")
    } else if trip * TRIPS_OF_A_COMMAND > least {
        (Warning, time, "little is left for a busy server")
    } else if trip * TRIPS_OF_A_WINDOW > window {
        let limit = format!("the claim window is {window:?}");
        (Warning, limit, "waiters may lose their places and grants")
    } else {
        return None;
    };
    let what = format!("a round trip takes {trip:.1?}, and {limit}: {then}");
    let cure = "run the process nearer to its server, or raise ttl(), command_timeout() and claim_window()";
    let promises = [LossIsTold, FirstComeFirstServed, ACallEnds];
    Some(Finding::new(severity, Topic::Latency, &promises, what, cure))
}
