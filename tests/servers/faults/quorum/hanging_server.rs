use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{
    LockRuntime,
    time::{Clock, SystemClock},
};
use leasehold_testkit::QuorumGroup;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{naive_quorum::NaiveQuorum, scene::LONG};
use crate::{
    faults::server::scene::{connect, run},
    support::{matrix::row, wait},
};

row! {
    hanging_server: protected, control;
    fault: "each of three servers hangs in its turn, then each is killed and comes back, under many acquires",
    right: "acquires go on at the other two; at worst, one waits until a lease that was left behind has ended",
    control: "a client that waits for the answers of all servers",
}

/// A server that was killed comes back with leases that were released meanwhile, for as long.
const TTL: Duration = Duration::from_secs(2);
/// How long a server is away.
const AWAY: Duration = Duration::from_millis(400);
const TASKS: usize = 4;
/// So many pairs show that work goes on.
const GOES_ON: u64 = 50;
/// How long the control waits.
const WAITED: Duration = Duration::from_secs(2);

fn protected() -> String {
    run(async {
        // A server that is back with all its data counts at once.
        let persistent =
            QuorumGroup::builder(3).arg("appendonly", "yes").arg("appendfsync", "always");
        let group = persistent.start();
        group.let_vote();
        let locks = connect(&group.url(), TTL).await;
        let work = Arc::new(Work::default());
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            tasks.spawn(Arc::clone(&work).run(task, locks.clone()));
        }
        work.goes_on().await;
        for number in 0..3 {
            group.pause(number);
            sleep(AWAY).await;
            work.goes_on().await;
            group.resume(number);
            work.goes_on().await;
        }
        for number in 0..3 {
            group.kill(number);
            work.goes_on().await;
            group.revive(number);
            // Before the next one is killed.
            sleep(TTL).await;
            work.goes_on().await;
        }
        work.is_over.store(true, Ordering::SeqCst);
        let mut times: Vec<Duration> = Vec::new();
        while let Some(of_task) = wait::soon("a task ends", tasks.join_next()).await {
            times.append(&mut of_task.expect("no panic"));
        }
        times.sort_unstable();
        let at = |permille: usize| times[times.len() * permille / 1000].as_micros();
        format!(
            "{} acquires: {} µs (median), {} µs (p99), {} ms at most",
            times.len(),
            at(500),
            at(990),
            times[times.len() - 1].as_millis()
        )
    })
}

/// Tasks that take locks of their own.
#[derive(Debug, Default)]
struct Work {
    done: AtomicU64,
    is_over: AtomicBool,
}

impl Work {
    /// Returns when many more locks were taken.
    async fn goes_on(&self) {
        let before = self.done.load(Ordering::SeqCst);
        let more = || self.done.load(Ordering::SeqCst) >= before + GOES_ON;
        wait::until("work goes on", more).await;
    }

    /// How long each acquire took.
    async fn run(self: Arc<Self>, task: usize, locks: LockRuntime) -> Vec<Duration> {
        let mut times = Vec::new();
        while !self.is_over.load(Ordering::SeqCst) {
            let name = format!("task-{task}/{}", times.len() % 8);
            let began = SystemClock.now();
            let acquiring = locks.lock(name).expect("a name").acquire().wait(wait::CEILING);
            let guard = acquiring.await.expect("a free lock");
            times.push(SystemClock.now().saturating_since(began));
            // It is over at a majority, or by itself.
            let _ = guard.release().await;
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        times
    }
}

fn control() -> String {
    run(async {
        let group = QuorumGroup::start(3);
        let quorum = NaiveQuorum::connect(&group, LONG).await;
        group.pause(2);
        let asked = timeout(WAITED, quorum.ask_all()).await;
        assert!(asked.is_err(), "the control came to no harm");
        group.resume(2);
        format!("no answer within {} s, with two servers well", WAITED.as_secs())
    })
}
