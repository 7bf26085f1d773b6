use std::{thread, time::Duration};

use leasehold::{ForceReleased, LockRuntime};
use leasehold_testkit::RedisServer;

use super::{mid_turn, scene};
use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
    wait,
};

row! {
    force_release_in_a_turn: protected, control;
    fault: "an operator ends turns of several tasks by force",
    right: "the holder learns of it; its late write is refused; waiting tasks are served later",
    control: "a storage that does not compare fences",
}

/// How often turns are ended while everybody works.
const ENDED: usize = 30;

fn protected() -> String {
    let server = RedisServer::start();
    let seen = mid_turn::right(&force_turns(&mid_turn::PROTECTED, &server, ENDED));
    scene::leaves_nothing(&server);
    seen
}

fn control() -> String {
    force_turns(&mid_turn::UNGATED, &RedisServer::start(), 0).wrong()
}

/// Ends a turn in each process while its holder is halted, then some while all work.
fn force_turns(plan: &Plan, server: &RedisServer, more: usize) -> Finished {
    let mut crew = Crew::start(plan, &server.url());
    let tokio = scene::threads();
    let operator = tokio.block_on(scene::connect(&server.url(), Duration::from_secs(1)));
    let ends = || tokio.block_on(end_turn(&operator));
    let force = || wait::block_until("a turn is ended", ends);
    let left = mid_turn::strike(&mut crew, plan, server, &force);
    assert!(left > 0, "no turn had more than one token");
    let mut ended = 0;
    wait::block_until("turns are ended", || {
        thread::sleep(Duration::from_millis(2));
        ended += usize::from(more > 0 && ends());
        ended >= more
    });
    crew.work(20);
    crew.finish()
}

/// Whether somebody had a turn, and it was ended.
async fn end_turn(operator: &LockRuntime) -> bool {
    let forced = operator.force_release("value").await.expect("an answer");
    matches!(forced, ForceReleased::Ended { .. })
}
