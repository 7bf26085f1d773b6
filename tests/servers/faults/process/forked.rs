use std::time::Duration;

use leasehold::{
    Guard, LockRuntime, LockRuntimeBuilder, Lost,
    error::{AcquireError, StoreErrorKind},
};
use leasehold_core::Origin;
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::RedisServer;
use tokio::{runtime::Builder, time::timeout};

use super::{roles, scene};
use crate::support::{
    child,
    fork::{self, Forking},
    lease,
    matrix::row,
    raw, wait,
};

row! {
    forked: protected, control;
    fault: "a process forks with a lock runtime that was never used, or has a thread and a lease",
    right: "each call in a fork fails at once, copied guards are lost, nothing is sent; the lease goes on",
    control: "a runtime that does not compare the process",
}

pub(super) const LAZY_ROLE: &str = "forks-lazy";
pub(super) const HOLDING_ROLE: &str = "forks-holding";
/// The key that lets the process go on.
const GO: &str = "go";
const TTL: Duration = Duration::from_secs(1);
/// What the child does without a look at its process.
const CREDULOUS: &str = "credulous";
/// Much longer than an acquire of a free lock takes, and shorter than the test waits.
const HANGS: Duration = Duration::from_secs(5);

fn spawn(role: &str, server: &RedisServer, ttl: Duration, mode: &str) -> Forking {
    let (url, ttl) = (server.url(), ttl.as_millis().to_string());
    fork::spawn(roles::CHILD, role, &[("url", &url), ("ttl", &ttl), ("mode", mode), ("go", GO)])
}

fn builder() -> LockRuntimeBuilder {
    let builder = scene::builder(scene::ttl());
    match child::arg("mode").as_str() {
        CREDULOUS => builder.seam(Rules { origin: Origin::anywhere, ..Rules::default() }),
        _ => builder,
    }
}

fn protected() -> String {
    let server = RedisServer::start();
    let mut lazy = spawn(LAZY_ROLE, &server, TTL, "");
    let made_in = format!("made in process {}", lazy.child.id());
    for _ in 0..2 {
        let refused = lazy.child.wait_for_line("refused ", wait::CEILING);
        assert!(refused.contains(&made_in) && refused.contains("after the fork"), "{refused}");
    }
    lazy.child.wait_for_line("parent granted ", wait::CEILING);

    let mut holding = spawn(HOLDING_ROLE, &server, TTL, "");
    let held = holding.child.wait_for_line("held ", wait::CEILING);
    for lost in ["state Lost(Forked)", "lost Lost(Forked)", "reentered Err(Lost(", "refused "] {
        holding.child.wait_for_line(lost, wait::CEILING);
    }
    // The fork has dropped its copies of all by now.
    holding.child.wait_for_line("fork done", wait::CEILING);
    let ttls = 3;
    scene::until_passed(&server, server.micros(), TTL * ttls);
    assert!(lease::in_use(&server).iter().any(|key| key == scene::LEASE), "{held} has ended");
    server.command(&["SET", GO, "1", "PX", "60000"]);
    holding.child.wait_for_line("released Ok(Ended)", wait::CEILING);
    scene::assert_clean(&server);
    format!(
        "3 forks refused at once; the lease of the process was held for {ttls} ttl more, then released"
    )
}

fn control() -> String {
    let server = RedisServer::start();
    let mut lazy = spawn(LAZY_ROLE, &server, Duration::from_secs(60), CREDULOUS);
    let [one, other] = [(); 2].map(|()| lazy.child.wait_for_line("granted ", wait::CEILING));
    assert_eq!(one, other, "the control gave each fork a lease of its own");
    // The forks still have the lock of the first server.
    let server = RedisServer::start();
    let mut holding = spawn(HOLDING_ROLE, &server, Duration::from_secs(60), CREDULOUS);
    holding.child.wait_for_line("hangs", wait::CEILING);
    "two forks held one lock with the same fence and lease id; the acquire of a third hung".into()
}

/// The child: makes a runtime that connects later, and forks twice.
pub(super) fn fork_lazy() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a tokio runtime");
    let locks = runtime.block_on(async { builder().connect_lazy(child::arg("url").as_str()) });
    let locks = locks.expect("settings that can work");
    let lock = locks.lock("a").expect("a name");
    for _ in 0..2 {
        fork::run(|| {
            let tried = runtime.block_on(async { lock.acquire().wait(HANGS).await });
            match tried {
                Ok(guard) => {
                    println!("granted {} {}", guard.fence(), guard.id());
                    std::mem::forget(guard);
                }
                Err(error) => println!("{}", refused(&error)),
            }
        });
    }
    // In the control, tokio may panic here: it polls what the forks have registered, too.
    let granted = runtime.block_on(async { lock.try_acquire().await });
    if let Ok(Some(guard)) = granted {
        println!("parent granted {}", guard.fence());
        let released = runtime.block_on(guard.release());
        assert!(released.is_ok(), "{released:?}");
    }
}

fn refused(error: &AcquireError) -> String {
    let AcquireError::Store(store) = error else { panic!("{error:?}") };
    assert_eq!(store.kind(), StoreErrorKind::Config, "{error}");
    format!("refused {error}")
}

/// The child: holds a lock with a thread of its own, forks, and goes on.
pub(super) fn fork_holding() {
    let (locks, guard) = wait::on_one_thread(async {
        let locks = builder().own_thread().connect(child::arg("url").as_str()).await;
        let locks = locks.expect("the server answers");
        let guard = scene::take(&locks, "a").await;
        (locks, guard)
    });
    println!("held {}", guard.id());
    let (lost, mut copies) = (guard.lost(), Some((locks, guard)));
    let mut lost = Some(lost);
    fork::run(|| look_and_drop(copies.take(), lost.take()));
    let (_locks, guard) = copies.expect("only the fork has taken its copy");
    wait::on_one_thread(async {
        scene::until_go(&mut raw::connect(&child::arg("url")).await).await;
        println!("released {:?}", guard.release().await);
    });
}

/// In a fork: what the copies of a runtime, a guard and a future tell, until they are dropped.
fn look_and_drop(copies: Option<(LockRuntime, Guard)>, lost: Option<Lost>) {
    let ((locks, guard), lost) = copies.zip(lost).expect("they are here");
    let lock = locks.lock("b").expect("a name");
    println!("state {:?}", guard.lease().state());
    if guard.is_held() {
        let acquired = wait::on_one_thread(async { timeout(HANGS, lock.acquire()).await.is_ok() });
        println!("{}", if acquired { "acquired" } else { "hangs" });
        std::process::abort();
    }
    wait::on_one_thread(async {
        println!("lost {:?}", lost.await);
        println!("reentered {:?}", guard.reenter().await.map(|again| again.fence()));
        println!("{}", refused(&lock.acquire().await.expect_err("another process")));
    });
    drop((guard, lock, locks));
    println!("fork done");
}
