use std::{thread, time::Duration};

use leasehold_testkit::RedisServer;

use super::{mid_turn, scene};
use crate::support::{crew::Crew, matrix::row};

row! {
    flushall_in_a_turn: protected, control;
    fault: "FLUSHALL in the middle of turns of several tasks",
    right: "leases of such a turn are refused after newer tokens; their tasks learn of the loss",
    control: "a storage that does not compare fences",
}

/// How often the data goes while everybody works.
const FLUSHES: usize = 30;

fn protected() -> String {
    let server = RedisServer::start();
    let mut crew = Crew::start(&mid_turn::PROTECTED, &server.url());
    let flush = || server.flush_all();
    let left = mid_turn::strike(&mut crew, &mid_turn::PROTECTED, &server, &flush);
    assert!(left > 0, "no turn had more than one token");
    for _ in 0..FLUSHES {
        thread::sleep(Duration::from_millis(7));
        server.flush_all();
    }
    crew.work(20);
    let finished = crew.finish();
    scene::leaves_nothing(&server);
    mid_turn::right(&finished)
}

fn control() -> String {
    let server = RedisServer::start();
    let mut crew = Crew::start(&mid_turn::UNGATED, &server.url());
    mid_turn::strike(&mut crew, &mid_turn::UNGATED, &server, &|| server.flush_all());
    crew.finish().wrong()
}
