use std::{
    panic::{self, AssertUnwindSafe},
    time::Duration,
};

use leasehold::{Guard, LockRuntime, error::ReleaseError};
use leasehold_testkit::RedisServer;
use tokio::runtime::{Builder, Runtime};

use super::scene;
use crate::support::{child, matrix::row, naive::NaiveLock, raw, wait};

row! {
    runtime_dropped: protected, control;
    fault: "a tokio runtime is dropped with live guards inside and outside of its tasks",
    right: "nothing panics or blocks; the guards are lost; the ttl frees the locks",
    control: "a guard whose drop spawns its release",
}

pub(super) const ROLE: &str = "drops";
pub(super) const NAIVE_ROLE: &str = "naive-drops";
const TTL: Duration = Duration::from_secs(1);
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn protected() -> String {
    let server = RedisServer::start();
    let mut seen = Vec::new();
    for flavor in ["one thread", "two threads"] {
        let mut child = scene::spawn(ROLE, &server, TTL, flavor);
        child.wait_for_line("ended well", wait::CEILING);
        let status = child.wait_for_exit(wait::CEILING).expect("it ends");
        assert!(status.success(), "{status}");
        seen.push(flavor);
    }
    wait::on_one_thread(async {
        let locks = scene::runtime_at(&server.url(), TTL).await;
        for name in NAMES {
            scene::take(&locks, name).await.release().await.expect("held to the end");
        }
        let _ = locks.shutdown(wait::CEILING).await;
    });
    scene::assert_clean(&server);
    format!("{} guards on {}: no panic, none blocked", NAMES.len(), seen.join(" and "))
}

fn runtime(mode: &str) -> Runtime {
    let mut builder = match mode {
        "one thread" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(2).enable_all().build().expect("a tokio runtime")
}

/// The child: drops a tokio runtime under its guards, then ends them in every way there is.
pub(super) fn drop_runtimes() {
    let runtime = runtime(&child::arg("mode"));
    let (locks, mut guards) = runtime.block_on(take_all());
    let inside = guards.remove(0);
    runtime.spawn(async move {
        let _inside = inside;
        std::future::pending::<()>().await;
    });
    drop(runtime);
    assert!(guards.iter().all(|guard| !guard.is_held() && guard.remaining().is_zero()));
    // Outside of any runtime.
    drop(guards.remove(0));
    wait::on_one_thread(async {
        let released = guards.remove(0).release().await;
        assert!(matches!(released, Err(ReleaseError::Lost(_))), "{released:?}");
        // Inside of another one.
        drop(guards);
        let _ = locks.shutdown(Duration::from_millis(100)).await;
    });
    drop(locks);
    println!("ended well");
}

async fn take_all() -> (LockRuntime, Vec<Guard>) {
    let locks = scene::runtime_at(&child::arg("url"), scene::ttl()).await;
    let mut guards = Vec::new();
    for name in NAMES {
        guards.push(scene::take(&locks, name).await);
    }
    (locks, guards)
}

fn control() -> String {
    let server = RedisServer::start();
    let mut child = scene::spawn(NAIVE_ROLE, &server, TTL, "one thread");
    let dropped = child.wait_for_line("dropped ", wait::CEILING);
    assert_eq!(dropped, "panicked", "the control ended well");
    "the drop of the guard panicked".into()
}

/// A guard of the naive lock that gives it back when it is dropped.
struct NaiveGuard(Option<(NaiveLock, crate::support::naive::NaiveHeld)>);

impl Drop for NaiveGuard {
    fn drop(&mut self) {
        let Some((mut lock, held)) = self.0.take() else { return };
        tokio::spawn(async move { lock.release(&held).await });
    }
}

/// The control's child.
pub(super) fn drop_naively() {
    let runtime = runtime(&child::arg("mode"));
    let guard = runtime.block_on(async {
        let connection = raw::connect(&child::arg("url")).await;
        let mut lock = NaiveLock::new(connection, "a", scene::ttl());
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        NaiveGuard(Some((lock, held)))
    });
    drop(runtime);
    panic::set_hook(Box::new(|_| {}));
    let dropping = panic::catch_unwind(AssertUnwindSafe(|| drop(guard)));
    println!("dropped {}", if dropping.is_err() { "panicked" } else { "well" });
}
