//! What users pass between tasks and threads is `Send`, `Sync` and `'static`.

use std::{pin::pin, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    routing::get,
};
use leasehold::{
    Acquire, AcquireAll, Guard, Lease, LeaseEnd, LockRuntime, LockRuntimeBuilder, Lost, Owner,
    ReentrantLock, ShutdownReport,
    error::{AcquireError, ConnectError, InspectError, ReenterError, ReleaseError, WithError},
    fencing::{FenceGate, GateError, MemoryGate},
};
use leasehold_core::LockStore;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::poll_once;

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
    shared::<dyn LockStore>();
}

#[test]
fn futures_are_sent_between_threads() {
    sent::<Acquire>();
    sent::<AcquireAll>();
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
    sent_future(lock.with_ok(async |_| {}));
    sent_future(owner.scope(async {}));
    sent_future(guard.reenter());
    sent_future(locks.inspect("orders/42"));
    sent_future(locks.force_release("orders/42"));
    sent_future(locks.shutdown(Duration::ZERO));
    sent_future(LockRuntime::connect("redis://127.0.0.1:1"));
    sent_future(guard.release());
}

/// What a handler of axum awaits is sent between threads. The body borrows what is around it.
#[tokio::test]
async fn a_handler_of_axum_runs_a_body_that_borrows() {
    async fn pay(State(locks): State<LockRuntime>, Path(order): Path<u32>) -> String {
        let (gate, key) = (MemoryGate::new(), format!("orders/{order}"));
        let lock = locks.lock(&key).unwrap();
        let mut steps = Vec::new();
        let paid = lock.acquire().wait(Duration::from_secs(5)).with(async |lease| {
            steps.push(gate.advance(&key, (&lease).into()).await?);
            steps.push(gate.admit(&key, lease.stamp()).await?);
            Ok::<_, GateError>(lease.fence())
        });
        let paid = paid.await.unwrap();
        let later =
            lock.with_ok(async |lease| (gate.admit(&key, lease.stamp()).await, lease.fence()));
        let (admitted, fence) = later.await.unwrap();
        assert!(fence > paid && admitted.is_ok());
        format!("{steps:?}")
    }
    let locks = LockRuntime::embedded().unwrap();
    let service = Router::new().route("/{order}", get(pay)).with_state(locks);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async { axum::serve(listener, service).await });
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = b"GET /42 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("[First, Again]"), "{answer}");
    serving.abort();
}

/// An acquire is a future itself, for whatever takes one.
#[tokio::test]
async fn an_acquire_is_a_future() {
    let locks = LockRuntime::embedded().unwrap();
    let lock = locks.lock("orders/42").unwrap();
    let guard = tokio::spawn(lock.acquire()).await.unwrap().unwrap();
    let mut waiting = lock.acquire().wait(Duration::from_secs(30));
    assert!(poll_once(pin!(&mut waiting)).is_pending());
    // It stands in line, and goes on as it was asked for.
    let mut waiting = waiting.wait(Duration::ZERO);
    assert!(poll_once(pin!(&mut waiting)).is_pending());
    let fence = guard.fence();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap();
    assert!(next.fence() > fence);
    let all = tokio::spawn(locks.all(["a", "b"]).unwrap().acquire()).await.unwrap().unwrap();
    assert_eq!(all.stamps().count(), 2);
}
