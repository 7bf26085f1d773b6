use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
};

row! {
    flushall: protected, control;
    fault: "FLUSHALL while a holder is between its read and its write",
    right: "the holder learns of the loss; the late write is refused; fences grow",
    control: "a plain counter",
}

fn protected() -> String {
    let server = RedisServer::start();
    let finished = flush_under_each(&scene::ONE_TASK, &server);
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused >= 3 && summary.lost >= 3, "{summary:?}");
    scene::leaves_nothing(&server);
    format!("3 times: {seen}")
}

fn control() -> String {
    let server = RedisServer::start();
    flush_under_each(&Plan { tasks: 1, ..Plan::NAIVE }, &server).wrong()
}

/// Takes the data away under a holder in each process, until others have written.
fn flush_under_each(plan: &Plan, server: &RedisServer) -> Finished {
    let mut crew = Crew::start(plan, &server.url());
    for index in 0..plan.processes {
        crew.work(20);
        let read = crew.halt(index);
        server.flush_all();
        crew.until_above(read);
        crew.resume(index);
    }
    crew.work(20);
    crew.finish()
}
