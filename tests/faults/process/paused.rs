use crate::support::{
    crew::{Crew, Plan},
    matrix::Row,
};
use leasehold_testkit::RedisServer;

const ROW: Row = Row {
    id: "process-paused",
    fault: "a holder is stopped (SIGSTOP) between its read and its write, past its ttl",
    right: "the next holder gets the lock; the late write is refused; the loss is told",
    control: "a storage that does not look at fences",
};

#[test]
fn process_paused() {
    ROW.run(protected, control);
}

fn protected() -> String {
    pause_each(&Plan::PROTECTED).right()
}

fn control() -> String {
    pause_each(&Plan::UNGATED).wrong()
}

/// Stops each process in the midst of a section, until others have written.
fn pause_each(plan: &Plan) -> crate::support::crew::Finished {
    let server = RedisServer::start();
    let mut crew = Crew::start(plan, &server.url());
    for index in 0..plan.processes {
        let read = crew.halt(index);
        crew.child(index).stop();
        crew.until_above(read);
        crew.child(index).cont();
        crew.resume(index);
    }
    crew.finish()
}
