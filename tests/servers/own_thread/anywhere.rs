//! With a thread of its own, a runtime's futures may be polled anywhere: outside of tokio, and in
//! another tokio runtime than the one that polled them first.

use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    thread,
    time::Duration,
};

use leasehold::{
    ForceReleased, Guard, LeaseEnd, LockRuntime, Released,
    error::WithError,
    fencing::{FenceGate, RedisGate},
    once::Begun,
    redis::{RedisConfig, RedisPool},
    time::{Clock, SystemClock},
};
use leasehold_testkit::RedisServer;

use crate::support::{
    patient,
    wait::{self, CEILING, without_tokio},
};

const SOON: Duration = Duration::from_millis(100);

/// Runtimes on either store, and what keeps their server.
fn runtimes() -> Vec<(LockRuntime, Option<RedisServer>)> {
    let server = RedisServer::start();
    let url = server.url();
    let connecting = patient::builder().own_thread().connect(&url);
    let on_redis = without_tokio(connecting).expect("the server answers");
    let embedded = patient::builder().own_thread().embedded().expect("good settings");
    // Outside of tokio, it gets a thread without being asked for one.
    let asked_for_none = patient::builder().embedded().expect("good settings");
    vec![(on_redis, Some(server)), (embedded, None), (asked_for_none, None)]
}

fn held(locks: &LockRuntime, name: &str) -> Guard {
    without_tokio(locks.lock(name).expect("a name").acquire()).expect("a lease")
}

#[test]
fn every_future_works_where_there_is_no_tokio_runtime() {
    for (locks, _server) in runtimes() {
        let lock = locks.lock("a").expect("a name");
        let guard = held(&locks, "a");
        assert!(without_tokio(lock.try_acquire()).expect("an answer").is_none());
        // A wait that ends with its time, and one that ends with the lock.
        without_tokio(lock.acquire().wait(SOON)).expect_err("somebody has it");
        let waits = thread::spawn({
            let lock = lock.clone();
            move || without_tokio(lock.acquire()).expect("a lease").fence()
        });
        thread::sleep(SOON);
        let inner = without_tokio(guard.reenter()).expect("it is held");
        without_tokio(inner.release()).expect("a hold less");
        without_tokio(locks.inspect("a")).expect("an answer");
        let fence = guard.fence();
        assert_eq!(without_tokio(guard.release()).expect("held to the end"), Released::Ended);
        assert!(waits.join().expect("no panic") > fence);

        let body = async |_| Ok::<_, ()>(7);
        assert_eq!(without_tokio(lock.with(body)).expect("held to the end"), 7);
        let owner = locks.owner();
        let guard = without_tokio(owner.scope(lock.acquire())).expect("a lease");
        let lost = guard.lost();
        let ended = without_tokio(locks.force_release("a")).expect("an answer");
        assert!(matches!(ended, ForceReleased::Ended { .. }), "{ended:?}");
        assert!(matches!(without_tokio(lost), LeaseEnd::Lost(_)));
        drop(guard);

        let short = lock.acquire().ttl(Duration::from_millis(500)).renew(false);
        let expiring = without_tokio(short).expect("a lease");
        assert!(matches!(without_tokio(expiring.lost()), LeaseEnd::Lost(_)));
        drop(expiring);

        let once = locks.once("form").expect("a name");
        let Begun::First(run) = without_tokio(once.begin()).expect("an answer") else {
            panic!("nobody ran it before")
        };
        without_tokio(run.succeed()).expect("confirmed");

        let _left = held(&locks, "left");
        assert_eq!(without_tokio(locks.drain(SOON)).held, 1);
        assert!(without_tokio(locks.shutdown(CEILING)).unreleased.is_empty());
    }
}

/// Without a thread of its own, too, while the tokio runtime runs in which its work is done.
#[test]
fn a_call_may_be_polled_outside_of_the_tokio_runtime_of_its_locks() {
    let server = RedisServer::start();
    let home = tokio::runtime::Runtime::new().expect("a tokio runtime");
    let connecting = async { patient::builder().connect(&server.url()).await };
    let locks = home.block_on(connecting).expect("the server answers");
    let lock = locks.lock("a").expect("a name");
    for _ in 0..2 {
        let guard = held(&locks, "a");
        without_tokio(lock.acquire().wait(SOON)).expect_err("somebody has it");
        assert_eq!(without_tokio(guard.release()).expect("held to the end"), Released::Ended);
        without_tokio(locks.inspect("a")).expect("an answer");
        // All connections are made anew.
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
}

/// A gate has no thread of its own: it uses the tokio runtime in which its pool was made.
#[test]
fn a_gate_may_be_polled_outside_of_tokio() {
    let server = RedisServer::start();
    let home = tokio::runtime::Runtime::new().expect("a tokio runtime");
    let gate = home.block_on(async {
        let config = RedisConfig::new(&server.url()).expect("the server's address is one");
        RedisGate::new(RedisPool::new(&config).expect("good settings"))
    });
    let locks = patient::builder().own_thread().embedded().expect("good settings");
    let guard = held(&locks, "gate");
    without_tokio(gate.admit("orders:42", guard.stamp())).expect("the newest fence");
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Polls a future in a tokio runtime that is dropped before it is polled on.
fn begun_elsewhere<T>(future: impl IntoFuture<Output = T, IntoFuture: Send + 'static>) -> Boxed<T> {
    let mut future: Boxed<T> = Box::pin(future.into_future());
    wait::on_one_thread(async {
        // A few polls, with time for answers in between: what it waits for takes far longer.
        for _ in 0..3 {
            let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            assert!(polled.is_pending(), "it does not wait");
            tokio::time::sleep(SOON / 10).await;
        }
    });
    future
}

#[test]
fn a_future_goes_on_when_the_tokio_runtime_that_polled_it_is_gone() {
    let runners: [fn(Boxed<()>); 2] =
        [|future| without_tokio(future), |future| wait::on_one_thread(future)];
    for (locks, _server) in runtimes() {
        for run in runners {
            let lock = locks.lock("a").expect("a name");
            let guard = held(&locks, "a");
            let timeout = begun_elsewhere(lock.acquire().wait(SOON * 6));
            run(Box::pin(async { drop(timeout.await.expect_err("somebody has it")) }));
            let acquire = begun_elsewhere(lock.acquire());
            let with = begun_elsewhere({
                let lock = lock.clone();
                async move { lock.with(async |_| Ok::<_, ()>(())).await }
            });
            let lost = begun_elsewhere(guard.lost());
            without_tokio(guard.release()).expect("held to the end");
            run(Box::pin(async { assert_eq!(lost.await, LeaseEnd::Released) }));
            run(Box::pin(async { drop(acquire.await.expect("a lease").release().await) }));
            run(Box::pin(async {
                let outcome: Result<(), WithError<()>> = with.await;
                outcome.expect("held to the end");
            }));
            let short = lock.acquire().ttl(Duration::from_secs(1)).renew(false);
            let expiring = without_tokio(short).expect("a lease");
            let lost = begun_elsewhere(expiring.lost());
            run(Box::pin(async { assert!(matches!(lost.await, LeaseEnd::Lost(_))) }));
            // Its body is polled on, too.
            let body = begun_elsewhere({
                let lock = lock.clone();
                async move { lock.with(async |_| lasting().await).await }
            });
            run(Box::pin(async { body.await.expect("held to the end") }));
        }
        let guard = held(&locks, "drained");
        let draining = locks.clone();
        let drain = begun_elsewhere(async move { draining.drain(CEILING).await });
        drop(guard);
        assert_eq!(without_tokio(drain).held, 0);
    }
}

/// Work that needs no tokio runtime.
async fn lasting() -> Result<(), ()> {
    let until = SystemClock.now() + SOON * 6;
    poll_fn(move |cx| {
        if SystemClock.now() >= until {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        thread::spawn(move || {
            thread::sleep(SOON);
            waker.wake();
        });
        Poll::Pending
    })
    .await;
    Ok(())
}

/// What keeps time for the runtime keeps its thread, too: nothing of it may stay.
#[test]
fn nothing_keeps_the_thread_when_its_owner_is_gone() {
    let server = RedisServer::start();
    let clock = Arc::new(SystemClock);
    let builder = patient::builder().own_thread().clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let url = server.url();
    let redis = without_tokio(builder.clone().connect(&url)).expect("the server answers");
    let memory = builder.embedded().expect("good settings");
    for locks in [redis, memory] {
        let guard = held(&locks, "a");
        let waits = begun_elsewhere(locks.lock("a").expect("a name").acquire());
        let lost = begun_elsewhere(guard.lost());
        drop((locks, guard, waits, lost));
    }
    let started = SystemClock.now();
    while Arc::strong_count(&clock) > 1 {
        let waited = SystemClock.now().saturating_since(started);
        assert!(waited < CEILING, "{} hold the clock", Arc::strong_count(&clock) - 1);
        thread::sleep(Duration::from_millis(20));
    }
}
