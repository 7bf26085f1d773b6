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
    let finished = pause_two(&PLAN);
    let summary = finished.history.check().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.refused >= 2 && summary.lost >= 2, "{summary:?}");
    assert_eq!(summary.refused_in_belief, 0, "{summary:?}");
    finished.right()
}

fn control() -> String {
    pause_two(&Plan { gated: false, ..PLAN }).wrong()
}

/// Stops one process in the midst of a section, then another that got the lock after it, until the
/// third has written.
fn pause_two(plan: &Plan) -> Finished {
    let group = scene::group(3);
    let mut crew = Crew::start(plan, &group.url());
    let mut read = 0;
    for index in [0, 1] {
        read = crew.halt(index);
        crew.child(index).stop();
    }
    crew.until_above(read);
    for index in [0, 1] {
        crew.child(index).cont();
        crew.resume(index);
    }
    crew.work(10);
    let finished = crew.finish();
    scene::leaves_nothing(&group);
    finished
}
