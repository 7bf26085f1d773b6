//! A process that has no file descriptors left.

use std::{
    fmt::Display,
    fs::{self, File},
    path::Path,
    process::{self, Command},
    time::Duration,
};

use leasehold::{LockRuntime, LockRuntimeBuilder};
use leasehold_testkit::{Log, RedisServer};
use tokio::runtime::Builder;

use super::is_ours;
use crate::support::{child, wait};

const REMEDY: &str = "ulimit -n";
const NONE_LEFT: &str = "this process has no file descriptors left";

#[test]
fn child_program() {
    let log = Log::of_this_process;
    match child::role().as_deref() {
        Some("connects") => on_flavor(connects(log())),
        Some("reconnects") => on_flavor(reconnects(log())),
        _ => return,
    }
    process::exit(0);
}

fn on_flavor(work: impl Future<Output = ()>) {
    let mut builder = match &*child::arg("flavor") {
        "multi-thread" => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    builder.worker_threads(2).enable_all().build().expect("a tokio runtime").block_on(work);
}

fn builder() -> LockRuntimeBuilder {
    let builder = LockRuntime::builder().outage_patience(Duration::from_millis(600));
    #[cfg(feature = "tls")]
    let builder = match child::arg("ca") {
        ca if ca.is_empty() => builder,
        ca => builder.tls_root_ca(leasehold::redis::Pem::file(ca)),
    };
    if child::arg("flavor") == "own-thread" { builder.own_thread() } else { builder }
}

/// Lets the parent take away what this process could open, and end its connections.
async fn until_limited() {
    println!("limited");
    let gone = child::arg("gone");
    wait::until("a limit", || Path::new(&gone).exists()).await;
    File::open("/dev/null").expect_err("there are none");
}

/// Lets the parent give it back.
async fn until_unlimited() {
    println!("unlimited");
    wait::until("no limit", || File::open("/dev/null").is_ok()).await;
}

fn tell<T>(what: &str, outcome: Result<T, impl Display>) {
    match outcome {
        Ok(_) => println!("{what}: it works"),
        Err(error) => println!("{what}: {error}"),
    }
}

/// A child that connects when nothing is left.
async fn connects(log: Log) {
    let url = child::arg("url");
    until_limited().await;
    tell("connect", builder().connect(url.as_str()).await);
    match builder().connect_lazy(url.as_str()) {
        Err(error) => println!("lazy: {error}"),
        Ok(locks) => {
            println!("lazy");
            ask(&locks).await;
            tell_log(&log);
        }
    }
    println!("done");
}

/// A child whose connections end when nothing is left.
async fn reconnects(log: Log) {
    let url = child::arg("url");
    let locks = builder().connect(url.as_str()).await.expect("the server answers");
    locks.inspect("a").await.expect("an answer");
    until_limited().await;
    println!("lazy");
    ask(&locks).await;
    tell_log(&log);
    println!("done");
}

/// Asks for a lock in every way, and once more when there are descriptors again.
async fn ask(locks: &LockRuntime) {
    let lock = locks.lock("a").expect("a name");
    let patient = || lock.acquire().wait(wait::CEILING);
    tell("try", lock.try_acquire().await);
    tell("acquire", patient().await);
    tell("inspect", locks.inspect("a").await);
    println!("health: {}", locks.health());
    println!("diagnosis: {:?}", locks.diagnose().await.to_string());
    until_unlimited().await;
    let guard = patient().outage_patience(wait::CEILING).await.expect("there are files again");
    tell("afterwards", guard.release().await);
}

fn tell_log(log: &Log) {
    for line in log.lines() {
        println!("log: {line}");
    }
}

/// Runs a child that may open no files for a while, and returns what it said.
fn run(role: &str, server: &RedisServer, flavor: &str) -> Vec<String> {
    run_with(role, server, &[("url", &server.url()), ("flavor", flavor), ("ca", "")])
}

fn run_with(role: &str, server: &RedisServer, args: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone");
    let args = [args, &[("gone", gone.to_str().expect("a path in UTF-8"))]].concat();
    let mut child = child::spawn(module_path!(), role, &args);
    let id = child.id().to_string();
    let limit = |most: &str| {
        let most = format!("--nofile={most}:");
        let limiting = Command::new("prlimit").args(["--pid", &id, &most]).status();
        assert!(limiting.expect("util-linux has it").success());
    };
    child.wait_for_line("limited", wait::CEILING);
    limit("1");
    for kind in ["normal", "pubsub"] {
        server.command(&["CLIENT", "KILL", "TYPE", kind]);
    }
    fs::write(&gone, "").expect("a file");
    // One that cannot even begin ends at once.
    if child.wait_for_line("lazy", wait::CEILING).is_empty() {
        child.wait_for_line("unlimited", wait::CEILING);
        limit("1024");
    }
    child.wait_for_line("done", wait::CEILING);
    child.seen().to_vec()
}

#[track_caller]
fn line<'a>(seen: &'a [String], what: &str) -> &'a str {
    let found = seen.iter().find_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {what:?} in {seen:#?}"))
}

/// What the child said of its fault in each way, and that it works afterwards.
fn is_told(seen: &[String]) {
    for what in ["try", "acquire", "inspect", "health"] {
        is_ours(line(seen, what), &[NONE_LEFT, REMEDY]);
    }
    assert!(line(seen, "diagnosis").contains(NONE_LEFT), "{seen:#?}");
    assert_eq!(line(seen, "afterwards"), "it works", "{seen:#?}");
    for logged in seen.iter().filter(|line| line.starts_with("log: ")) {
        is_ours(logged, &[]);
    }
}

#[test]
fn a_process_that_has_none_to_connect_says_so() {
    let server = RedisServer::builder().tcp().start();
    for flavor in ["current-thread", "multi-thread"] {
        let seen = run("connects", &server, flavor);
        is_ours(line(&seen, "connect"), &[NONE_LEFT, REMEDY]);
        is_told(&seen);
    }
    let seen = run("connects", &server, "own-thread");
    is_ours(line(&seen, "connect"), &["os error 24", REMEDY]);
}

/// A name is looked up in files: that fails with an error of its own.
#[test]
fn a_process_that_has_none_to_look_up_a_name_says_so() {
    let server = RedisServer::builder().tcp().start();
    let url = server.url().replace("127.0.0.1", "localhost");
    let seen =
        run_with("connects", &server, &[("url", &url), ("flavor", "current-thread"), ("ca", "")]);
    is_ours(line(&seen, "connect"), &[NONE_LEFT, REMEDY]);
    is_told(&seen);
}

#[test]
fn a_process_that_has_none_to_connect_again_says_so() {
    let server = RedisServer::builder().tcp().start();
    for flavor in ["current-thread", "multi-thread", "own-thread"] {
        is_told(&run("reconnects", &server, flavor));
    }
}

/// The file of an authority is read for each connection.
#[cfg(feature = "tls")]
#[test]
fn a_process_that_has_none_to_read_a_certificate_says_so() {
    let server = RedisServer::builder().tls().start();
    let folder = tempfile::tempdir().expect("a folder");
    let ca = folder.path().join("ca");
    fs::write(&ca, server.ca_pem().expect("an authority")).expect("a file");
    let (url, ca) = (server.url(), ca.to_str().expect("a path in UTF-8"));
    let args = [("url", &*url), ("flavor", "current-thread"), ("ca", ca)];
    let seen = run_with("connects", &server, &args);
    for what in ["connect", "lazy"] {
        is_ours(line(&seen, what), &[NONE_LEFT, REMEDY]);
    }
    is_told(&run_with("reconnects", &server, &args));
}

/// A server that is not there is told as that, whatever is open.
#[test]
fn a_process_that_has_some_blames_the_server_that_is_gone() {
    let server = RedisServer::builder().tcp().start();
    let url = server.url();
    drop(server);
    let outcome = wait::on_one_thread(LockRuntime::connect(&url));
    let text = outcome.expect_err("nobody is there").to_string();
    assert!(text.contains("check that the server runs") && !text.contains(REMEDY), "{text}");
}
