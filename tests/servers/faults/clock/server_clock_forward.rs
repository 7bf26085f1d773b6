use std::time::Duration;

use leasehold_testkit::ClockShim;

use super::scene;
use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
};

row! {
    server_clock_forward: protected, control;
    fault: "the server's clock steps forward by an hour during a hold: the lease ends there at once",
    right: "the next holder gets a greater fence; the late write is refused; the holder learns of the loss",
    control: "a storage that does not compare fences",
}

/// Much longer than the row takes: no lease runs out but by the step. One task in each process: a
/// release that hands on to the next task asks no server, and so cannot tell of a loss.
const PLAN: Plan = Plan { tasks: 1, ttl: Duration::from_secs(30), ..Plan::PROTECTED };

fn protected() -> String {
    let finished = step_forward(&PLAN);
    let summary = finished.history.check().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.refused >= 1 && summary.lost >= 1, "{summary:?}");
    finished.right()
}

fn control() -> String {
    step_forward(&Plan { gated: false, ..PLAN }).wrong()
}

fn step_forward(plan: &Plan) -> Finished {
    let shim = ClockShim::build();
    let server = scene::server_with(&shim);
    let mut crew = Crew::start(plan, &server.url());
    crew.work(20);
    let read = crew.halt(0);
    let before = scene::time(&server);
    shim.forward(scene::HOUR);
    assert!(scene::time(&server) >= before + scene::HOUR, "the clock did not step");
    crew.until_above(read);
    crew.resume(0);
    crew.work(20);
    crew.finish()
}
