//! What users pass between tasks and threads is `Send`, `Sync` and `'static`.

use std::future::{Future, IntoFuture};

use leasehold::{
    Acquire, Guard, Lease, LeaseEnd, LockRuntime, LockRuntimeBuilder, Lost, Owner, ReentrantLock,
    ShutdownReport,
    error::{AcquireError, ConnectError, InspectError, ReenterError, ReleaseError, WithError},
};
use leasehold_core::LockStore;

fn shared<T: Send + Sync + 'static + ?Sized>() {}

fn sent<T: Send + 'static>() {}

fn sent_future<F: Future + Send>(_: F) {}

#[test]
fn handles_are_shared_between_threads() {
    shared::<Guard>();
    shared::<Lease>();
    shared::<ReentrantLock>();
    shared::<LockRuntime>();
    shared::<LockRuntimeBuilder>();
    shared::<Owner>();
    shared::<Acquire>();
    shared::<dyn LockStore>();
}

#[test]
fn futures_are_sent_between_threads() {
    sent::<<Acquire as IntoFuture>::IntoFuture>();
    sent::<Lost>();
}

#[test]
fn errors_and_reports_are_shared_between_threads() {
    shared::<AcquireError>();
    shared::<ReenterError>();
    shared::<ReleaseError>();
    shared::<WithError<std::io::Error>>();
    shared::<ConnectError>();
    shared::<InspectError>();
    shared::<LeaseEnd>();
    shared::<ShutdownReport>();
}

/// Whatever an `async fn` of the API keeps across its awaits, a spawned task may await it.
#[tokio::test]
async fn every_call_may_be_awaited_in_a_spawned_task() {
    let locks = LockRuntime::embedded().unwrap();
    let lock = locks.lock("orders/42").unwrap();
    let guard = lock.acquire().await.unwrap();
    let owner = locks.owner();
    sent_future(lock.try_acquire());
    sent_future(lock.acquire().try_acquire());
    sent_future(lock.with(async |_| Ok::<_, ()>(())));
    sent_future(lock.acquire().with(async |_| Ok::<_, ()>(())));
    sent_future(owner.scope(async {}));
    sent_future(guard.reenter());
    sent_future(locks.inspect("orders/42"));
    sent_future(locks.force_release("orders/42"));
    sent_future(locks.shutdown(std::time::Duration::ZERO));
    sent_future(LockRuntime::connect("redis://127.0.0.1:1"));
    sent_future(guard.release());
}
