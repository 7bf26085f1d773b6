//! Every public call in a fork of the process that made the lock runtime ends at once.

use std::{io, time::Duration};

use leasehold::{
    Guard, LeaseState, LockRuntime, LossReason,
    error::{AcquireError, InspectError, ReenterError, ReleaseError, StoreError, StoreErrorKind},
};
use leasehold_testkit::RedisServer;

use crate::support::{child, fork, lease, patient, wait};

const ROLE: &str = "forks";

#[test]
fn child_program() {
    if child::role().as_deref() == Some(ROLE) {
        fork_and_call();
    }
}

#[test]
fn each_call_in_a_fork_says_that_the_runtime_is_of_another_process() {
    let server = RedisServer::start();
    for thread in ["own", "of tokio"] {
        let args = [("url", &*server.url()), ("thread", thread)];
        let mut forking = fork::spawn(module_path!(), ROLE, &args);
        forking.child.wait_for_line("all called", wait::CEILING);
        forking.child.wait_for_line("released", wait::CEILING);
        assert_eq!(lease::in_use(&server), [""; 0], "{thread}");
    }
}

fn fork_and_call() {
    // Its threads are not in the fork.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a tokio runtime");
    let (locks, guards) = runtime.block_on(async {
        let builder = patient::builder();
        let builder = if child::arg("thread") == "own" { builder.own_thread() } else { builder };
        let locks = builder.connect(child::arg("url").as_str()).await.expect("the server answers");
        let mut guards = Vec::new();
        for name in ["a", "b"] {
            guards.push(locks.lock(name).expect("a name").acquire().await.expect("a lease"));
        }
        (locks, guards)
    });
    let mut copies = Some(guards);
    fork::run(|| {
        let guards = copies.take().expect("it is here");
        wait::on_one_thread(call_all(&locks, guards));
        println!("all called");
    });
    runtime.block_on(async {
        for guard in copies.expect("only the fork has taken its copy") {
            guard.release().await.expect("held to the end");
        }
    });
    println!("released");
}

async fn call_all(locks: &LockRuntime, mut guards: Vec<Guard>) {
    let lock = locks.lock("c").expect("a name").class("forks");
    refused(lock.acquire().await.err());
    refused(lock.try_acquire().await.err());
    refused(lock.acquire().wait(Duration::ZERO).owner(&locks.owner()).await.err());
    assert!(lock.with(|_| async { Ok::<_, io::Error>(()) }).await.is_err());
    let both = locks.all(["c", "d"]).expect("names");
    refused(both.acquire().await.err());
    let once = locks.once("e").expect("a name");
    refused(once.begin().await.err());
    inspected(locks.inspect("a").await.err());
    inspected(locks.force_release("a").await.err());
    let listed = locks.list("*").expect("a pattern").next().await;
    told(listed.expect("an item").expect_err("another process").store_error());
    assert!(!locks.wait_graph().await.unread.is_empty());
    let diagnosis = locks.diagnose().await.to_string();
    assert!(diagnosis.contains("fork"), "{diagnosis}");
    assert_eq!((locks.footprint().watched, locks.footprint().pending), (0, 0));
    locks.draining().await;
    for report in [locks.drain(wait::CEILING).await, locks.shutdown(wait::CEILING).await] {
        assert_eq!((report.held, report.unreleased.len()), (0, 0));
    }

    let guard = guards.remove(0);
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::Forked));
    assert!(!guard.is_held() && guard.remaining().is_zero());
    assert!(guard.cancellation().is_cancelled());
    assert!(format!("{guard:?} {:?}", guard.lease()).contains("Forked"));
    assert_eq!(guard.lost().await, leasehold::LeaseEnd::Lost(LossReason::Forked));
    let reentered = guard.reenter().await.map(drop);
    assert!(
        matches!(&reentered, Err(ReenterError::Lost(lost)) if lost.reason == LossReason::Forked)
    );
    let released = guard.release().await;
    assert!(
        matches!(&released, Err(ReleaseError::Lost(lost)) if lost.reason == LossReason::Forked)
    );
    drop(guards);
}

fn refused(error: Option<AcquireError>) {
    match error {
        Some(AcquireError::Store(error)) => told(&error),
        other => panic!("{other:?}"),
    }
}

fn inspected(error: Option<InspectError>) {
    match error {
        Some(InspectError::Store(error)) => told(&error),
        other => panic!("{other:?}"),
    }
}

fn told(error: &StoreError) {
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    assert!(error.to_string().contains("made in process"), "{error}");
}
