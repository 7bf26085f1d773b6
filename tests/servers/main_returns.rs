//! `main` returns, fails or panics while a guard lives: what can still be sent is sent, and one line
//! names what cannot.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
};

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{Log, RedisServer};
use tokio::runtime::{Builder, Runtime};

use crate::support::{child, lease, patient, wait};

const ROLE: &str = "leaves";
const WAYS: [&str; 3] = ["returns", "fails", "panics"];
const NAMES: [&str; 2] = ["a", "b"];

#[test]
fn child_program() {
    if child::role().as_deref() == Some(ROLE) {
        leave();
    }
}

/// Like a `main` that is left; the child prints what was logged, and ends at once.
fn leave() {
    let log = Log::of_this_process();
    let left = catch_unwind(AssertUnwindSafe(main_like));
    println!("left {}", if left.is_err() { "panicking" } else { "in order" });
    for line in log.with("drain()") {
        println!("warned {line}");
    }
    process::exit(0);
}

fn main_like() -> io::Result<()> {
    let runtime = runtime(&child::arg("flavor"));
    let ended = runtime.block_on(body());
    drop(runtime);
    ended
}

fn runtime(flavor: &str) -> Runtime {
    let mut builder = match flavor {
        "multi-thread" => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    builder.enable_all().build().expect("a tokio runtime")
}

async fn body() -> io::Result<()> {
    let builder = patient::builder();
    let builder = if child::arg("flavor") == "own-thread" { builder.own_thread() } else { builder };
    let locks = builder.connect(child::arg("url").as_str()).await.expect("the server answers");
    let _guards = take(&locks).await;
    work(&child::arg("way"))?;
    Ok(())
}

async fn take(locks: &LockRuntime) -> Vec<Guard> {
    let mut guards = Vec::new();
    for name in NAMES {
        guards.push(locks.lock(name).expect("a name").acquire().await.expect("a lease"));
    }
    guards
}

fn work(way: &str) -> io::Result<()> {
    match way {
        "fails" => Err(io::Error::other("the work fails")),
        "panics" => panic!("the work panics"),
        _ => Ok(()),
    }
}

/// Which locks are still taken when the process has ended, and what it warned of.
fn left(flavor: &str, way: &str) -> (Vec<String>, Vec<String>) {
    let server = RedisServer::start();
    let args = [("url", &*server.url()), ("flavor", flavor), ("way", way)];
    let mut child = child::spawn(module_path!(), ROLE, &args);
    child.wait_for_line("left ", wait::CEILING);
    child.read_to_end(wait::CEILING);
    let warned = child.seen().iter().filter_map(|line| line.strip_prefix("warned "));
    (lease::in_use(&server), warned.map(Into::into).collect())
}

#[test]
fn a_runtime_with_one_thread_warns_once_of_all_locks_that_it_leaves() {
    for way in WAYS {
        let (taken, warned) = left("current-thread", way);
        assert_eq!(taken.len(), NAMES.len(), "{way}: {taken:?}");
        let [line] = &warned[..] else { panic!("{way}: {warned:?}") };
        assert!(line.starts_with("WARN") && line.contains(r#"["a", "b"]"#), "{way}: {line}");
    }
}

#[test]
fn a_runtime_with_several_threads_releases_or_warns() {
    for way in WAYS {
        let (taken, warned) = left("multi-thread", way);
        for key in &taken {
            let name = key.split(['{', '}']).nth(1).expect("a name in the key");
            let told = warned.iter().any(|line| line.contains(&format!("{name:?}")));
            assert!(told, "{way}: {key} is taken, and nothing told of it: {warned:?}");
        }
    }
}

#[test]
fn a_runtime_with_its_own_thread_releases_what_main_leaves() {
    for way in WAYS {
        let (taken, warned) = left("own-thread", way);
        // A busy machine may need longer than the runtime waits: then it says so.
        assert!(taken.is_empty() || !warned.is_empty(), "{way}: {taken:?} without a line");
    }
}
