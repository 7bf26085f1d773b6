//! P10 on a real server that stands still: finished work is not held up, and what the server has
//! not confirmed the runtime goes on telling it.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use leasehold::{
    LockRuntime, Released,
    error::{AcquireError, ReleaseError, SelfWait},
    once::{OnceOutcome, Progress},
};
use leasehold_testkit::RedisServer;

use crate::support::{lease, wait};

/// How long a lease would hold a caller up.
const TTL: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(1);
/// Far more than a command timeout on a busy machine, and far less than the ttl.
const CEILING: Duration = Duration::from_secs(20);

async fn scene() -> (RedisServer, LockRuntime) {
    let server = RedisServer::start();
    let builder = LockRuntime::builder().ttl(TTL).command_timeout(TIMEOUT);
    let builder = builder.connect_timeout(Duration::from_secs(20));
    let locks = builder.connect(&server.url()).await.expect("the server answers");
    (server, locks)
}

/// The output of a call, which may take one command timeout.
async fn in_time<T>(what: &str, call: impl IntoFuture<Output = T>) -> T {
    let began = now();
    let output = wait::soon(what, call).await;
    let took = now().duration_since(began);
    assert!(took < CEILING, "{what} took {took:?}");
    output
}

#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
fn now() -> Instant {
    Instant::now()
}

/// The server hears of a release soon after it goes on, and not at the end of the ttl.
async fn until_free(server: &RedisServer, name: &str) {
    let key = format!("leasehold:{{{name}}}:lease");
    wait::until("the lock is free", || !lease::is_held(server, &key)).await;
}

#[tokio::test]
async fn work_that_ends_while_the_server_stands_still_is_done() {
    let (server, locks) = scene().await;
    let lock = locks.lock("orders").expect("a name");
    let work = lock.with(async |_| {
        server.stop_signal();
        Ok::<_, Infallible>("receipt 7")
    });
    assert_eq!(in_time("with", work).await.expect("finished work"), "receipt 7");
    assert_eq!(locks.footprint().pending, 1);
    server.cont_signal();
    until_free(&server, "orders").await;
}

#[tokio::test]
async fn a_release_answers_while_the_server_stands_still() {
    let (server, locks) = scene().await;
    let take = async |name| locks.lock(name).expect("a name").acquire().await.expect("a lease");
    let (guard, held) = (take("orders").await, take("held").await);
    let inner = held.reenter().await.expect("the lease is held");
    server.stop_signal();
    let told = in_time("a release", guard.release()).await;
    assert!(matches!(told, Err(ReleaseError::Unconfirmed { .. })), "{told:?}");
    let told = in_time("a release of one hold of two", inner.release()).await;
    assert!(matches!(told, Ok(Released::StillHeld(_))), "{told:?}");
    let again = in_time("a re-entry", held.reenter()).await.expect("the lease stands");
    server.cont_signal();
    until_free(&server, "orders").await;
    drop(again);
    held.release().await.expect("held to the end");
}

#[tokio::test]
async fn a_run_that_ends_while_the_server_stands_still_is_done_and_its_door_is_closed() {
    let (server, locks) = scene().await;
    let once = locks.once("submission").expect("a name");
    let run = once.run(async |_| {
        server.stop_signal();
        Ok::<_, Infallible>("receipt 7")
    });
    let ran = in_time("a run", run).await.expect("finished work");
    assert_eq!(ran.ran(), Some("receipt 7"));
    server.cont_signal();
    let key = "leasehold:{submission}:lease";
    let kept = || locks.footprint().pending == 0 && lease::is_held(&server, key);
    wait::until("the runtime has closed the door", kept).await;
    let again = once.run(async |_| Ok::<_, Infallible>("another")).await.expect("an answer");
    let OnceOutcome::Duplicate(duplicate) = again else { panic!("{again:?}") };
    assert_eq!(duplicate.progress, Progress::Done);

    let leasehold::once::Begun::First(run) =
        locks.once("begun").expect("a name").begin().await.expect("an answer")
    else {
        panic!("nobody else runs")
    };
    server.stop_signal();
    let told = in_time("a success", run.succeed()).await;
    assert!(matches!(told, Err(ReleaseError::Unconfirmed { .. })), "{told:?}");
    let begin = in_time("a beginning", locks.once("other").expect("a name").begin()).await;
    assert!(begin.is_err(), "{begin:?}");
    server.cont_signal();
}

/// A task that waits for itself is told so, whatever the server does.
#[tokio::test]
async fn a_task_that_waits_for_itself_is_told_so_while_the_server_stands_still() {
    let (server, locks) = scene().await;
    let lock = locks.lock("orders").expect("a name");
    let _guard = lock.acquire().await.expect("a lease");
    server.stop_signal();
    let nested = lock.acquire().wait(TIMEOUT + TIMEOUT / 2);
    let told = in_time("a nested acquire", nested).await;
    server.cont_signal();
    let Err(AcquireError::Timeout(timeout)) = told else { panic!("{told:?}") };
    assert_eq!(timeout.self_wait, Some(SelfWait::WithoutOwner), "{timeout}");
}

/// Guards end while the server stands still: the drain says what it could not confirm.
#[tokio::test]
async fn a_drain_ends_while_the_server_stands_still() {
    let (server, locks) = scene().await;
    let take = async |name| locks.lock(name).expect("a name").acquire().await.expect("a lease");
    let (ended, held) = (take("ended").await, take("held").await);
    server.stop_signal();
    drop(ended);
    let report = in_time("a drain", locks.drain(TIMEOUT)).await;
    let unreleased: Vec<_> = report.unreleased.iter().map(ToString::to_string).collect();
    assert_eq!((report.held, &unreleased[..]), (1, &["ended".into(), "held".into()][..]));
    assert!(!held.is_held());
    // The runtime goes on: once the server does, both are free.
    server.cont_signal();
    until_free(&server, "ended").await;
    until_free(&server, "held").await;
}
