//! Many processes under random faults: at a storage that looks at fences nothing is lost.
//!
//! One seed draws the faults; it is printed, and `LEASEHOLD_CHAOS="seed=7 seconds=60"` sets it and the
//! size of the run. What the processes do with the faults is up to the machine.
#![expect(clippy::disallowed_methods, reason = "processes and servers take real time")]

#[path = "real_support/child.rs"]
mod child;
#[path = "real_support/events.rs"]
mod events;
#[path = "real_support/patient.rs"]
mod patient;
#[path = "real_support/raw.rs"]
mod raw;
#[path = "real_support/storage.rs"]
mod storage;
#[path = "real_support/wait.rs"]
mod wait;

#[path = "chaos/faults.rs"]
mod faults;
#[path = "chaos/fleet.rs"]
mod fleet;
#[path = "chaos/plan.rs"]
mod plan;
#[path = "chaos/report.rs"]
mod report;
#[path = "chaos/tally.rs"]
mod tally;
#[path = "chaos/task.rs"]
mod task;
#[path = "chaos/values.rs"]
mod values;
#[path = "chaos/worker.rs"]
mod worker;

use plan::Plan;

#[test]
fn nothing_is_lost_under_random_faults() {
    let plan = Plan::from_env();
    let report = fleet::run(&plan);
    println!("{report}");
    report.assert_right(&plan);
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
