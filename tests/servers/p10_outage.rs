//! P10 on real servers that are stopped or killed: an outage is told as an outage, and in few
//! lines.

use std::{future::IntoFuture, time::Duration};

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
            waiting.push(tokio::spawn(lock.acquire().into_future()));
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
            .map(|lock| tokio::spawn(lock.acquire().into_future()))
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
