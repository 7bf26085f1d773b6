use std::time::Duration;

use super::scene;
use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
};

row! {
    holder_paused: protected, control;
    fault: "two holders of a lock of a quorum are stopped (SIGSTOP) past their ttl, between read and write",
    right: "the next holder gets the lock; the late writes are refused; the holders learn of the loss",
    control: "a storage that does not compare fences",
}

const PLAN: Plan = Plan { ttl: Duration::from_millis(600), ..Plan::PROTECTED };

fn protected() -> String {
    pause_two(&PLAN).right_though_paused()
}

fn control() -> String {
    pause_two(&Plan { gated: false, ..PLAN }).wrong()
}

/// Two processes are stopped while they work under the plan.
fn pause_two(plan: &Plan) -> Finished {
    let group = scene::group(3);
    let mut crew = Crew::start(plan, &group.url());
    crew.pause_two();
    let finished = crew.finish();
    scene::leaves_nothing(&group);
    finished
}
