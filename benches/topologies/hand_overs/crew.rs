#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    sync::mpsc::{Receiver, Sender},
    time::Instant,
};

use ::leasehold::LockRuntime;
use tokio::{task::JoinSet, time::timeout_at};

use super::{
    Load, Subject,
    leasehold::{self, Task},
    queue,
    tally::Turn,
    window::Window,
};
use crate::{Failure, options::Options, subjects::on_each, worker::Contender};

/// What is the same for all runtimes of a round.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) subject: Subject,
    pub(super) load: Load,
    /// The addresses that the library is given.
    pub(super) addresses: Vec<String>,
    /// The contended locks.
    pub(super) locks: Vec<Place>,
}

/// Where a lock is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    /// The address of its master.
    pub(super) url: String,
    /// The number of the address that the library reaches it by.
    pub(super) address: usize,
}

/// The thread of one lock runtime. It connects, says so, and goes on when it is told the window; an
/// error of the channel means that another one has failed.
pub(super) fn run(
    plan: &Plan,
    number: usize,
    ready: &Sender<()>,
    start: &Receiver<Window>,
) -> Result<Vec<Turn>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let turns = runtime.block_on(async {
        let begin = || {
            ready.send(())?;
            Ok::<_, Failure>(start.recv()?)
        };
        match plan.subject {
            Subject::Leasehold | Subject::Acknowledged => {
                let connect = async |address: &str| {
                    let builder = LockRuntime::builder().replication(plan.subject.replication());
                    Ok(builder.connect(address).await?)
                };
                let runtimes = on_each(plan.addresses.clone(), connect).await?;
                let mut tasks = Vec::new();
                for (lock, place) in plan.locks.iter().enumerate() {
                    let handle = runtimes[place.address].lock(place.name.as_str())?;
                    tasks.extend((0..plan.load.tasks).map(|_| (lock, Task(handle.clone()))));
                }
                let turns = contend(tasks, number, begin()?).await;
                for runtime in &runtimes {
                    leasehold::leave(runtime).await;
                }
                turns
            }
            Subject::Queue(channels) => {
                let mut tasks = Vec::new();
                for (lock, place) in plan.locks.iter().enumerate() {
                    let options = Options {
                        redis: place.url.clone(),
                        name: place.name.clone(),
                        workers: plan.load.tasks,
                        process: number,
                    };
                    let connected = queue::connect(&options, channels).await?;
                    tasks.extend(connected.into_iter().map(|task| (lock, task)));
                }
                contend(tasks, number, begin()?).await
            }
        }
    });
    runtime.shutdown_background();
    turns
}

/// Lets the tasks of a runtime contend until the window is over.
async fn contend<C: Contender>(
    tasks: Vec<(usize, C)>,
    runtime: usize,
    window: Window,
) -> Result<Vec<Turn>, Failure> {
    let mut running = JoinSet::new();
    for (task, (lock, contender)) in tasks.into_iter().enumerate() {
        let who = move |asked: Instant, got: Instant| Turn {
            lock,
            got,
            waited: got - asked,
            runtime,
            task,
        };
        running.spawn(timeout_at(window.drained().into(), again_and_again(contender, window, who)));
    }
    let mut all = Vec::new();
    while let Some(done) = running.join_next().await {
        all.append(&mut done?.map_err(|_| "a task waited for ever")??);
    }
    Ok(all)
}

async fn again_and_again<C: Contender>(
    mut contender: C,
    window: Window,
    turn: impl Fn(Instant, Instant) -> Turn,
) -> Result<Vec<Turn>, Failure> {
    let mut turns = Vec::new();
    loop {
        let asked = Instant::now();
        let held = contender.acquire().await?;
        let got = Instant::now();
        contender.release(held).await?;
        if window.contains(got) {
            turns.push(turn(asked, got));
        }
        // Who gets the lock after the end lets the others out at once.
        if window.is_over(got) {
            return Ok(turns);
        }
    }
}
