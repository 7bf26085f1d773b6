//! P10 on real servers that are stopped or killed: an outage is told as an outage, and in few
//! lines.

use std::time::Duration;

use leasehold::{
    Guard, LockRuntime, LockRuntimeBuilder,
    error::{AcquireError, Unavailable},
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Log, RedisServer};

use crate::support::wait;

/// What becomes of a server.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It stands still: connections stay open, and nothing is answered.
    Stopped,
    /// It is gone: connections end, and new ones are refused.
    Killed,
}

impl Fate {
    const ALL: [Self; 2] = [Self::Stopped, Self::Killed];

    fn strike(self, server: &RedisServer) {
        match self {
            Self::Stopped => server.stop_signal(),
            Self::Killed => server.kill(),
        }
    }

    fn mend(self, server: &RedisServer) {
        match self {
            Self::Stopped => server.cont_signal(),
            Self::Killed => server.restart(),
        }
    }
}

async fn connect(server: &RedisServer, builder: LockRuntimeBuilder) -> LockRuntime {
    builder.connect(&server.url()).await.expect("the server answers")
}

async fn sleep(time: Duration) {
    SystemClock.sleep_until(SystemClock.now() + time).await;
}

fn unavailable<T: std::fmt::Debug>(outcome: Result<T, AcquireError>) -> Unavailable {
    match outcome {
        Err(AcquireError::Unavailable(outage)) => *outage,
        other => panic!("not told as an outage: {other:?}"),
    }
}

#[tokio::test]
async fn waits_tries_and_once_say_that_the_server_is_away() {
    const PATIENCE: Duration = Duration::from_secs(1);
    for fate in Fate::ALL {
        let server = RedisServer::builder().tcp().start();
        let locks = connect(&server, LockRuntime::builder().outage_patience(PATIENCE)).await;
        let lock = locks.lock("orders/42").expect("a name");
        lock.acquire().await.expect("a lease").release().await.expect("held to the end");
        fate.strike(&server);

        let outage = unavailable(wait::soon("the end of a wait", lock.acquire()).await);
        assert!(outage.waited >= PATIENCE && outage.waited < wait::CEILING, "{fate:?}: {outage}");
        let text = outage.to_string();
        for words in ["lock \"orders/42\"", "has not answered for", "check"] {
            assert!(text.contains(words), "{fate:?}, {words:?}: {text}");
        }
        unavailable(wait::soon("the end of a try", lock.try_acquire()).await);
        let once = locks.once("form").expect("a name");
        unavailable(wait::soon("the end of a once", once.begin()).await);
        // A wait that is shorter than any patience.
        let short = lock.acquire().wait(Duration::from_millis(50));
        unavailable(wait::soon("the end of a short wait", short).await);

        fate.mend(&server);
        let again = lock.acquire().outage_patience(wait::CEILING);
        let again = wait::soon("a lease", again).await.expect("the server is back");
        again.release().await.expect("held to the end");
    }
}

#[tokio::test]
async fn those_who_wait_keep_their_order_when_the_server_is_back_in_time() {
    for fate in Fate::ALL {
        let server = RedisServer::builder().tcp().start();
        let locks = connect(&server, LockRuntime::builder().outage_patience(wait::CEILING)).await;
        let lock = locks.lock("orders/42").expect("a name");
        fate.strike(&server);
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(tokio::spawn(lock.acquire()));
            tokio::task::yield_now().await;
        }
        sleep(Duration::from_millis(1500)).await;
        fate.mend(&server);
        let mut fences = Vec::new();
        for waiting in waiting {
            let guard = wait::soon("a lease", waiting).await.expect("a task").expect("its turn");
            fences.push(guard.fence());
            guard.release().await.expect("held to the end");
        }
        assert!(fences.is_sorted() && fences.len() == 3, "{fate:?}: {fences:?}");
    }
}

/// However short: nothing else is on its way, and nothing was ever answered to a lazy runtime.
#[tokio::test]
async fn the_shortest_waits_say_that_the_server_is_away() {
    for fate in Fate::ALL {
        for wait in [1, 5, 50].map(Duration::from_millis) {
            let server = RedisServer::builder().tcp().start();
            let locks = connect(&server, LockRuntime::builder()).await;
            let lazy = LockRuntime::builder().connect_lazy(&server.url()).expect("an address");
            let lock = locks.lock("orders/42").expect("a name");
            lock.acquire().await.expect("a lease").release().await.expect("held to the end");
            fate.strike(&server);
            for locks in [&locks, &lazy] {
                for _ in 0..3 {
                    let short = locks.lock("orders/42").expect("a name").acquire().wait(wait);
                    let outage = unavailable(wait::soon("the end of a wait", short).await);
                    assert!(outage.waited >= wait, "{fate:?}: {outage}");
                }
            }
            fate.mend(&server);
        }
    }
}

/// The lock is taken, and the server falls silent while a task waits for it: the last word about
/// the lock is from before the outage.
#[tokio::test]
async fn a_queued_wait_says_that_its_server_has_fallen_silent() {
    const WAIT: Duration = Duration::from_secs(2);
    let stops = [30, 300, 600, 1_000, 1_700].map(Duration::from_millis);
    let mut all = tokio::task::JoinSet::new();
    for (fate, stops) in Fate::ALL.into_iter().flat_map(|fate| stops.map(|stops| (fate, stops))) {
        all.spawn(async move {
            let server = RedisServer::builder().tcp().start();
            let [locks, others] = [(); 2].map(|()| connect(&server, LockRuntime::builder()));
            let (locks, others) = (locks.await, others.await);
            let held = others.lock("orders/42").expect("a name").acquire().await.expect("a lease");
            let lock = locks.lock("orders/42").expect("a name");
            let waiting = tokio::spawn(lock.acquire().wait(WAIT));
            sleep(stops).await;
            fate.strike(&server);
            let waited = wait::soon("the end of a wait", waiting).await.expect("a task");
            let outage = unavailable(waited);
            assert!(outage.waited >= WAIT, "{fate:?}, {stops:?}: {outage}");
            fate.mend(&server);
            drop(held);
        });
    }
    while let Some(ended) = all.join_next().await {
        ended.expect("told as an outage");
    }
}

/// A server that is full, or was made a replica, answers each command with an error: that does not
/// say that others hold the lock.
#[tokio::test]
async fn a_free_lock_on_a_server_that_refuses_writes_is_not_told_as_taken() {
    let full: [&[&str]; 2] =
        [&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]];
    let demoted: [&[&str]; 2] = [&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]];
    for ([refuse, mend], word) in [(full, "maxmemory"), (demoted, "replica")] {
        let server = RedisServer::builder().tcp().start();
        let locks = connect(&server, LockRuntime::builder()).await;
        let lock = locks.lock("orders/42").expect("a name");
        lock.acquire().await.expect("a lease").release().await.expect("held to the end");
        server.command(refuse);
        for wait in [10, 300, 1_500].map(Duration::from_millis) {
            let waited = wait::soon("the end of a wait", lock.acquire().wait(wait)).await;
            let refused = unavailable(waited);
            let text = refused.to_string();
            assert!(text.contains(word) && text.contains("orders/42"), "{text}");
        }
        let refused = unavailable(wait::soon("the end of a try", lock.try_acquire()).await);
        assert!(refused.to_string().contains(word), "{refused}");
        server.command(mend);
        let again = wait::soon("a lease", lock.acquire()).await.expect("the server writes again");
        again.release().await.expect("held to the end");
    }
}

/// The server stands still for longer than the ttl. When it goes on, it executes the acquires in its
/// buffers, which were given up: no process has those leases.
#[tokio::test]
async fn a_lock_is_free_soon_after_an_outage_that_outlasts_the_ttl() {
    const TTL: Duration = Duration::from_secs(6);
    let server = RedisServer::builder().tcp().start();
    let second = Duration::from_secs(1);
    let builder =
        || LockRuntime::builder().ttl(TTL).command_timeout(second).outage_patience(second * 2);
    let (locks, others) = (connect(&server, builder()).await, connect(&server, builder()).await);
    let names = ["tried", "waited"];
    for name in names {
        for locks in [&locks, &others] {
            let guard = locks.lock(name).expect("a name").acquire().await.expect("a lease");
            guard.release().await.expect("held to the end");
        }
    }
    server.stop_signal();
    let [tried, waited] = names.map(|name| locks.lock(name).expect("a name"));
    let trying =
        tokio::spawn(async move { tried.try_acquire().await.map(|guard| guard.is_some()) });
    unavailable(wait::soon("the end of a wait", waited.acquire()).await);
    unavailable(wait::soon("the end of a try", trying).await.expect("a task"));
    // Every command is given up by then, and so was every withdrawal within a ttl.
    sleep(TTL + second * 5).await;
    let pending = locks.footprint().pending;
    server.cont_signal();
    let back_at = SystemClock.now();
    for name in names {
        let lock = others.lock(name).expect("a name");
        let guard = wait::soon("a lease", lock.acquire()).await.expect("a lease");
        guard.release().await.expect("held to the end");
    }
    let after = SystemClock.now().saturating_since(back_at);
    println!("both are free after {after:?}");
    assert!(after < TTL.mul_f64(0.6), "blocked by nobody for {after:?}");
    assert_eq!(pending, 2, "the withdrawals were still to be told");
    wait::until("everything is told", || locks.footprint().pending == 0).await;
}

/// The control: the same wait on a lock that somebody holds on a server that answers.
#[tokio::test]
async fn a_taken_lock_is_told_as_a_taken_lock() {
    let server = RedisServer::start();
    let patience = Duration::from_secs(6);
    let builder = || LockRuntime::builder().outage_patience(patience);
    let (locks, others) = (connect(&server, builder()).await, connect(&server, builder()).await);
    let held = others.lock("orders/42").expect("a name").acquire().await.expect("a lease");
    let lock = locks.lock("orders/42").expect("a name");
    let waited = lock.acquire().wait(patience + Duration::from_secs(1)).await;
    assert!(matches!(waited, Err(AcquireError::Timeout(_))), "{waited:?}");
    assert!(lock.try_acquire().await.expect("an answer").is_none());
    held.release().await.expect("held to the end");
}

#[tokio::test]
async fn twenty_seconds_without_a_server_are_at_most_thirty_lines() {
    const LEASES: usize = 1_000;
    const WAITING: usize = 100;
    let (log, _collecting) = Log::as_services_see_it();
    for fate in Fate::ALL {
        let before = log.lines().len();
        let server = RedisServer::builder().tcp().start();
        let locks = connect(&server, LockRuntime::builder().ttl(Duration::from_secs(10))).await;
        let mut guards: Vec<Guard> = Vec::new();
        for number in 0..LEASES {
            let lock = locks.lock(format!("many/{number}")).expect("a name");
            guards.push(lock.acquire().await.expect("a lease"));
        }
        fate.strike(&server);
        let waiting: Vec<_> = (0..WAITING)
            .map(|number| locks.lock(format!("wait/{number}")).expect("a name"))
            .map(|lock| tokio::spawn(lock.acquire()))
            .collect();
        sleep(Duration::from_secs(20)).await;
        assert!(guards.iter().all(|guard| !guard.is_held()), "all of them are lost");
        drop(guards);
        fate.mend(&server);
        for waiting in waiting {
            unavailable(wait::soon("the end of a wait", waiting).await.expect("a task"));
        }
        let is_back = || log.lines()[before..].iter().any(|line| line.contains("answers again"));
        wait::until("the server is said to be back", is_back).await;
        let lines = &log.lines()[before..];
        println!("{fate:?}: {} lines: {lines:#?}", lines.len());
        assert!(lines.len() <= 30, "{fate:?}: {} lines: {lines:#?}", lines.len());
        let summaries = lines.iter().filter(|line| line.contains("the server does not answer"));
        assert!(summaries.count() >= 2, "{fate:?}: {lines:#?}");
    }
}
