use std::time::Duration;

use leasehold_testkit::RedisServer;

use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
};

row! {
    process_paused: protected, control;
    fault: "two holders are stopped (SIGSTOP) between their read and their write, past their ttl",
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
    let server = RedisServer::start();
    let mut crew = Crew::start(plan, &server.url());
    crew.pause_two();
    crew.finish()
}
