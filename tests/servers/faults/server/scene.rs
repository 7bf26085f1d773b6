//! What the rows of this room do to a server, and ask of a runtime.

use std::{thread, time::Duration};

use leasehold::{
    Guard, LockRuntime,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{RedisServer, history::Worker};

use crate::support::{crew::Plan, lease, naive::NaiveLock, patient, raw, wait};

/// The key of the lock that a crew works under.
pub(in crate::faults) const LEASE: &str = "leasehold:{value}:lease";

/// Processes of one task, whose turns end with their lease.
pub(in crate::faults) const ONE_TASK: Plan = Plan { tasks: 1, ..Plan::PROTECTED };

/// Two who follow each other.
pub(in crate::faults) const FIRST: Worker = 1;
pub(in crate::faults) const SECOND: Worker = 2;

/// Runs a future on threads of its own, which go on while this one talks to the server.
pub(in crate::faults) fn run<T>(future: impl Future<Output = T>) -> T {
    threads().block_on(future)
}

/// Threads that run tasks.
pub(super) fn threads() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a tokio runtime")
}

/// A runtime whose leases have a ttl.
pub(in crate::faults) async fn connect(url: &str, ttl: Duration) -> LockRuntime {
    let builder = patient::builder().ttl(ttl).claim_window(ttl);
    builder.connect(url).await.expect("the server answers")
}

/// A lease of a lock, in the end.
pub(in crate::faults) async fn take(locks: &LockRuntime, name: &str) -> Guard {
    let acquiring = locks.lock(name).expect("a name").acquire().wait(wait::CEILING);
    wait::soon("a lease", acquiring).await.expect("a lease")
}

/// Waits until a renewal has come through.
pub(in crate::faults) async fn renewed(guard: &Guard) {
    let end = || SystemClock.now() + guard.remaining();
    let before = end() + Duration::from_millis(20);
    wait::until("a renewal comes through", || end() > before).await;
}

/// A lock as everybody writes it first.
pub(in crate::faults) async fn naive(server: &RedisServer, ttl: Duration) -> NaiveLock {
    NaiveLock::new(raw::connect(&server.url()).await, "a", ttl)
}

/// Changes a setting of the server.
pub(in crate::faults) fn set(server: &RedisServer, key: &str, value: &str) {
    server.command(&["CONFIG", "SET", key, value]);
}

/// Runs a command that takes long on a thread of its own, which ends with the server.
pub(super) fn apart(
    server: &RedisServer,
    words: &'static [&'static str],
) -> thread::JoinHandle<redis::RedisResult<String>> {
    let client = redis::Client::open(server.url()).expect("the server's address is one");
    thread::spawn(move || {
        redis::cmd(words[0]).arg(&words[1..]).query(&mut client.get_connection()?)
    })
}

/// Waits until the server refuses whatever it is asked.
pub(super) fn until_refused(server: &RedisServer, code: &str) {
    wait::block_until(code, || {
        let asked = server.try_query::<String>(&["PING"]);
        asked.is_err_and(|error| error.code() == Some(code))
    });
}

/// When all is over, nobody holds the lock of a crew, and no key of it lives for ever.
pub(in crate::faults) fn leaves_nothing(server: &RedisServer) {
    wait::block_until("the lock is free", || !lease::is_held(server, LEASE));
    let immortal = server.keys_without_ttl();
    assert!(!immortal.iter().any(|key| key.starts_with("0/leasehold")), "{immortal:?}");
}
