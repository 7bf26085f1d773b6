//! Failovers under load: no fence repeats or goes back, the gate accepts no stale write, and no
//! increment is lost.
//!
//! `LEASEHOLD_FAILOVERS` says how many there are; `scripts/prove.sh` makes many.

mod acknowledged;
mod kind;
mod report;
mod round;
mod site;
mod watch;
mod with_cluster;
mod with_sentinel;

use std::env;

use kind::Kind;
use report::Report;
use site::Site;

use crate::support::crew::Plan;

/// How many masters fail; each kind in its turn.
const FAILOVERS: &str = "LEASEHOLD_FAILOVERS";

/// Processes with many tasks, behind a gate.
const PLAN: Plan = Plan { tasks: 4, ..Plan::PROTECTED };

/// Has the masters of a site fail, and says what was seen; then once more with a storage that
/// ignores fences, which has to come to harm.
fn run(site: &impl Site) -> Report {
    let failovers = env::var(FAILOVERS).map_or(3, |count| count.parse().expect("a number"));
    let mut report = Report::default();
    for number in 0..failovers {
        let kind = Kind::ALL[number % Kind::ALL.len()];
        let plan = PLAN.of(site.lock(number));
        report.add(kind, plan.name, &round::run(site, &plan, kind));
    }
    let plan = Plan { gated: false, ..PLAN.of(site.lock(failovers)) };
    report.control(round::run(site, &plan, Kind::Killed).finished.wrong());
    report
}
