//! Many processes under random faults: at a storage that looks at fences nothing is lost.
//!
//! One seed draws the faults; it is printed, and `LEASEHOLD_CHAOS="seed=7 seconds=60"` sets it and
//! the size of the run. What the processes do with the faults is up to the machine.
#![expect(clippy::disallowed_methods, reason = "processes and servers take real time")]

mod faults;
mod fleet;
mod plan;
mod report;
mod site;
mod tally;
mod task;
mod values;
mod worker;

use plan::Plan;
use site::Topology;

use crate::support::child;

/// The module whose test is the program of a child.
const CHILD: &str = module_path!();

#[test]
fn nothing_is_lost_under_random_faults() {
    run(&Plan::from_env());
}

#[test]
fn nothing_is_lost_on_a_cluster_under_random_faults() {
    run(&Plan { topology: Topology::Cluster, ..Plan::from_env() });
}

#[test]
fn nothing_is_lost_with_sentinels_under_random_faults() {
    run(&Plan { topology: Topology::Sentinel, ..Plan::from_env() });
}

fn run(plan: &Plan) {
    let report = fleet::run(plan);
    println!("{report}");
    report.assert_right(plan);
}

/// The control: the same without a gate at the storage.
#[test]
fn control_without_a_gate_writes_are_lost() {
    let mut damaged = None;
    for seed in 0..8 {
        let report = fleet::run(&Plan::control(seed));
        if report.stale_accepted() > 0 && report.lost_increments() > 0 {
            damaged = Some(report);
            break;
        }
    }
    println!("{}", damaged.expect("the control came to no harm"));
}

#[test]
fn child_program() {
    if child::role().is_some() {
        child::run(worker::work());
    }
}
