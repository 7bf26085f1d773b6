use leasehold::{
    Fence,
    time::{Clock, Instant, SystemClock},
};
use leasehold_testkit::{Event, RedisServer};

use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
};

row! {
    turn_paused: protected, control;
    fault: "a process is stopped (SIGSTOP) during a turn of four tasks, past its ttl",
    right: "its next tasks do not use the old turn: they get newer fences, in order",
    control: "a storage that does not compare fences",
}

const PLAN: Plan = Plan { tasks: 4, ..Plan::PROTECTED };

fn protected() -> String {
    let paused = pause(&PLAN);
    let history = &paused.finished.history;
    let summary = history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.refused >= 1 && summary.lost >= 1, "{summary:?}");
    let followed = paused.fences_of_the_tasks_behind();
    assert!(!followed.is_empty(), "nobody waited behind the stopped task");
    let newest = paused.newest_of_others();
    assert!(followed.iter().all(|fence| *fence > newest), "{followed:?}, {newest}");
    paused.finished.right();
    let (tasks, refused) = (followed.len(), summary.refused);
    format!("{tasks} tasks behind it got newer fences; {refused} stale write refused")
}

fn control() -> String {
    pause(&Plan { gated: false, ..PLAN }).finished.wrong()
}

struct Paused {
    stopped_at: Instant,
    continued_at: Instant,
    /// The stopped process has the first workers.
    workers: u64,
    finished: Finished,
}

fn pause(plan: &Plan) -> Paused {
    let server = RedisServer::start();
    let mut crew = Crew::start(plan, &server.url());
    crew.work(30);
    let read = crew.halt(0);
    crew.child(0).stop();
    let stopped_at = SystemClock.now();
    crew.until_above(read);
    crew.work(10);
    let continued_at = SystemClock.now();
    crew.child(0).cont();
    crew.resume(0);
    crew.work(30);
    let finished = crew.finish();
    Paused { stopped_at, continued_at, workers: plan.tasks as u64, finished }
}

impl Paused {
    /// What the tasks got that had asked before their process was stopped, and were served after.
    fn fences_of_the_tasks_behind(&self) -> Vec<Fence> {
        let events = self.finished.history.events().into_iter();
        let fences = events.filter_map(|event| match event {
            Event::Granted { worker, fence, asked_at, granted_at, .. } => {
                let waited = asked_at < self.stopped_at && granted_at > self.stopped_at;
                (worker < self.workers && waited).then_some(fence)
            }
            _ => None,
        });
        fences.collect()
    }

    /// The newest fence that others had before the process went on.
    fn newest_of_others(&self) -> Fence {
        let events = self.finished.history.events().into_iter();
        let fences = events.filter_map(|event| match event {
            Event::Granted { worker, fence, granted_at, .. } => {
                let before = self.stopped_at < granted_at && granted_at < self.continued_at;
                (worker >= self.workers && before).then_some(fence)
            }
            _ => None,
        });
        fences.max().expect("others had the lock meanwhile")
    }
}
