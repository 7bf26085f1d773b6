//! The walks of `docs/walks`, one a run, by its name: `scripts/walks.py trace` records which functions
//! are called in `walked`. Nothing is measured or checked here.

#![expect(clippy::disallowed_methods, reason = "real servers take real time")]

use std::{env, hint::black_box, process::ExitCode, time::Duration};

use leasehold::{Guard, LockRuntime, LockRuntimeBuilder, ReentrantLock};
use leasehold_testkit::{QuorumGroup, RedisCluster, RedisServer, cluster::slot_of};
use tokio::{
    runtime::{Builder, Runtime},
    spawn,
    time::sleep,
};

/// The lock of all walks.
const NAME: &str = "walk";
/// A program that is traced takes a hundred times as long.
const PATIENCE: Duration = Duration::from_secs(60);
/// The ttl or the claim window where a walk waits for a renewal or a heartbeat.
const SHORT: Duration = Duration::from_secs(12);
/// So long that connections and subscriptions are made, and that the tasks of a runtime rest.
const SETTLED: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("acquire_release") => acquire_release(),
        Some("hand_over") => hand_over(),
        Some("renewal") => renewal(),
        Some("loss_told") => loss_told(),
        Some("acquire_cluster") => acquire_cluster(),
        Some("acquire_quorum") => acquire_quorum(),
        _ => {
            eprintln!("walks: name one of the lists in docs/walks");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// What happens in here is the walk; `scripts/walks.py` knows the function by its name.
#[inline(never)]
fn walked<T>(tokio: &Runtime, walk: impl Future<Output = T>) -> T {
    black_box(tokio.block_on(walk))
}

fn tokio() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a tokio runtime")
}

/// Settings with which nothing is done for the second time in a walk.
fn patient() -> LockRuntimeBuilder {
    let builder = LockRuntime::builder().ttl(PATIENCE).claim_window(PATIENCE);
    let builder = builder.connect_timeout(PATIENCE).outage_patience(PATIENCE);
    builder.command_timeout(PATIENCE / 2)
}

/// A process that has acquired before: the connections are there.
async fn process(url: &str, builder: LockRuntimeBuilder) -> LockRuntime {
    let locks = builder.connect(url).await.expect("the server answers");
    pair(&locks.lock("other").expect("a name")).await;
    sleep(SETTLED).await;
    // Now the tasks of the runtime sleep for longer than a walk.
    pair(&locks.lock("other").expect("a name")).await;
    locks
}

async fn pair(lock: &ReentrantLock) {
    acquire(lock).await.release().await.expect("it is held");
}

async fn acquire(lock: &ReentrantLock) -> Guard {
    lock.acquire().wait(PATIENCE).await.expect("it is free in time")
}

fn lock(locks: &LockRuntime) -> ReentrantLock {
    locks.lock(NAME).expect("a name")
}

fn acquire_release() {
    let (tokio, server) = (tokio(), RedisServer::start());
    let locks = tokio.block_on(process(&server.url(), patient()));
    walked(&tokio, pair(&lock(&locks)));
}

fn hand_over() {
    let (tokio, server) = (tokio(), RedisServer::start());
    let holder = tokio.block_on(process(&server.url(), patient()));
    let other = tokio.block_on(process(&server.url(), patient().claim_window(SHORT)));
    let guard = tokio.block_on(acquire(&lock(&holder)));
    let waiting = lock(&other).acquire().wait(PATIENCE);
    let _guard = walked(&tokio, async {
        let waiting = spawn(waiting);
        // One heartbeat at least.
        sleep(SHORT / 3).await;
        guard.release().await.expect("it is held");
        waiting.await.expect("no panic").expect("it is free in time")
    });
}

fn renewal() {
    let (tokio, server) = (tokio(), RedisServer::start());
    let builder = patient().ttl(SHORT).command_timeout(SHORT / 3);
    let locks = tokio.block_on(process(&server.url(), builder));
    let _guard = tokio.block_on(acquire(&lock(&locks)));
    // A third of the ttl, and a little more.
    walked(&tokio, async { sleep(SHORT / 3 + SETTLED / 2).await });
}

fn loss_told() {
    let (tokio, server) = (tokio(), RedisServer::start());
    let builder = patient().ttl(SHORT).command_timeout(SHORT / 3);
    let locks = tokio.block_on(process(&server.url(), builder));
    let guard = tokio.block_on(acquire(&lock(&locks)));
    server.flush_all();
    let _end = walked(&tokio, guard.lost());
}

/// Of a lock whose slot has another owner than the process knows.
fn acquire_cluster() {
    let (tokio, cluster) = (tokio(), RedisCluster::start());
    let locks = tokio.block_on(process(&cluster.url(), patient()));
    tokio.block_on(pair(&lock(&locks)));
    let (slot, owner) = (slot_of(NAME), RedisCluster::owner_of(NAME));
    cluster.migrate(slot, (owner + 1) % usize::from(RedisCluster::MASTERS));
    let _guard = walked(&tokio, async {
        let guard = acquire(&lock(&locks)).await;
        // It asks the servers for other slots that have moved.
        sleep(SETTLED).await;
        guard
    });
}

fn acquire_quorum() {
    let (tokio, group) = (tokio(), QuorumGroup::start(3));
    group.let_vote();
    let locks = tokio.block_on(process(&group.url(), patient()));
    let _guard = walked(&tokio, acquire(&lock(&locks)));
}
