use std::future::pending;

use leasehold::{
    LockRuntime,
    once::{Begun, Duplicate, OnceGuard, Progress},
};
use leasehold_testkit::RedisServer;

use super::{
    CHILD,
    server::{TTL, as_micros, assert_granted_after, expiry, granted_at, runtime_at},
};
use crate::support::{child, wait};

const NAME: &str = "submit/user-7/form-3";
const LEASE: &str = "leasehold:{submit/user-7/form-3}:lease";

async fn begin(locks: &LockRuntime) -> Begun {
    locks.once(NAME).expect("a name").begin().await.expect("the server answers")
}

async fn told(locks: &LockRuntime) -> Duplicate {
    match begin(locks).await {
        Begun::Duplicate(duplicate) => duplicate,
        Begun::First(run) => panic!("somebody was before {run:?}"),
    }
}

/// Asks again and again until the door is open.
async fn first(locks: &LockRuntime) -> OnceGuard {
    let asks = async {
        loop {
            match begin(locks).await {
                Begun::First(run) => return run,
                Begun::Duplicate(duplicate) => {
                    assert_eq!(duplicate.progress, Progress::Running, "it never succeeded");
                    tokio::time::sleep(duplicate.remaining.min(TTL / 40)).await;
                }
            }
        }
    };
    wait::soon("the door opens", asks).await
}

#[tokio::test]
async fn a_run_that_was_killed_opens_the_door_after_its_ttl_and_not_before() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let mut killed = child::spawn(CHILD, "run", &[("url", &server.url()), ("then", "hangs")]);
    let fence = killed.wait_for_line("begun ", wait::CEILING);
    killed.kill();
    let duplicate = told(&locks).await;
    assert_eq!(duplicate.holder, "click 17");
    assert_eq!(fence, duplicate.fence.to_string());
    let (killed_at, ends_at) = expiry(&server, LEASE);
    assert!(ends_at <= killed_at + as_micros(TTL));
    let run = first(&locks).await;
    assert_granted_after(granted_at(&server, LEASE), ends_at);
    assert!(run.fence() > duplicate.fence, "its storage refuses what the dead one may still send");
    run.succeed().await.expect("the server answers");
    assert_eq!(told(&locks).await.progress, Progress::Done);
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

/// What was confirmed outlives the process that confirmed it.
#[tokio::test]
async fn a_process_that_is_killed_after_its_success_leaves_the_door_closed() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let mut killed = child::spawn(CHILD, "run", &[("url", &server.url()), ("then", "succeeds")]);
    killed.wait_for_line("succeeded", wait::CEILING);
    killed.kill();
    let (now, ends_at) = expiry(&server, LEASE);
    // Far longer than the ttl of 4 s.
    assert!(ends_at > now + as_micros(TTL * 10), "the window is an hour");
    let duplicate = told(&locks).await;
    assert_eq!((duplicate.progress, duplicate.holder.as_str()), (Progress::Done, "click 17"));
}

/// Begins a run, and ends it as it is told.
pub(crate) async fn run() {
    let locks = runtime_at(&child::arg("url")).await;
    let once = locks.once(NAME).expect("a name").label("click 17");
    let begun = once.window(std::time::Duration::from_secs(3600)).begin().await;
    let Ok(Begun::First(run)) = begun else { panic!("{begun:?}") };
    println!("begun {}", run.fence());
    if child::arg("then") == "succeeds" {
        run.succeed().await.expect("the server answers");
        println!("succeeded");
        return pending().await;
    }
    // Dropped with the process.
    let _run = run;
    pending::<()>().await;
}
