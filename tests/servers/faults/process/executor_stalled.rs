use std::time::Duration;

use leasehold_testkit::RedisServer;

use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
    wait,
};

row! {
    executor_stalled: protected, control;
    fault: "blocking code stalls a holder's only thread, which also renews, for 2 ttl",
    right: "the first check after it shows the loss; the write is refused",
    control: "a storage that does not compare fences",
}

const PLAN: Plan = Plan { processes: 2, ttl: Duration::from_millis(700), ..Plan::PROTECTED };

fn protected() -> String {
    let finished = stall(&PLAN);
    let history = &finished.history;
    // The belief that was told before the stall ends within it: nobody else believes meanwhile.
    let summary = history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.refused >= 1 && summary.lost >= 1, "{summary:?}");
    assert_eq!(summary.refused_in_belief, 0, "{summary:?}");
    finished.right()
}

fn control() -> String {
    stall(&Plan { gated: false, ..PLAN }).wrong()
}

/// Stalls a process in the midst of a section.
fn stall(plan: &Plan) -> Finished {
    let server = RedisServer::start();
    let mut crew = Crew::start(plan, &server.url());
    let read = crew.stall(0, plan.ttl * 2);
    crew.until_above(read);
    crew.child(0).wait_for_line("went on", wait::CEILING);
    crew.work(10);
    crew.finish()
}
