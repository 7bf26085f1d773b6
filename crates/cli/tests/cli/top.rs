//! `leasehold top`, in a terminal.

use std::time::Duration;

use leasehold::{
    LockRuntime, Strictness,
    time::{Clock, SystemClock},
};
use leasehold_testkit::RedisServer;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::support::{LIMIT, LOCK, Running, Terminal, finished, leasehold, settled, value};

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

fn top(server: &RedisServer) -> Terminal {
    Terminal::start(&[PROGRAM, "top"], [("REDIS_URL", server.url())])
}

fn run(server: &RedisServer, name: &str, options: &[&str]) -> Running {
    let words = [&["run"], options, &[name, "--", "sleep", "100"]].concat();
    Running::start(leasehold(words).env("REDIS_URL", server.url()))
}

fn held(server: &RedisServer, name: &str) {
    settled(|| (value(server, name)["state"] == "held").then_some(()));
}

/// The line of a lock in the table.
fn line<'a>(screen: &'a str, name: &str) -> Option<&'a str> {
    screen.lines().find(|line| line.trim_start_matches('│').starts_with(&format!("{name} ")))
}

/// The names of the table, from above.
fn order(screen: &str) -> Vec<String> {
    let rows = screen.lines().skip_while(|line| !line.contains("TTL LEFT")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('│'));
    let names = rows.filter_map(|line| line.trim_start_matches('│').split_whitespace().next());
    names.filter(|name| name.contains('/')).map(str::to_owned).collect()
}

#[test]
fn locks_are_shown_sorted_filtered_and_released() {
    let server = RedisServer::start();
    let first = run(&server, "orders/1", &[]);
    held(&server, "orders/1");
    let _second = run(&server, LOCK, &[]);
    held(&server, LOCK);
    let _waiter = run(&server, LOCK, &["--wait-forever"]);
    let mut top = top(&server);
    let screen = top.wait_for("the waiter", |screen| {
        line(screen, LOCK).is_some_and(|line| line.contains(" held  1 "))
    });
    assert_eq!(order(&screen), [LOCK, "orders/1"], "{screen}");
    assert!(screen.contains("2 locks  1 waiting  3 processes"), "{screen}");
    assert!(screen.contains("steps") && screen.contains("at most 200"), "{screen}");
    assert!(screen.contains(&format!("/sleep waits for {LOCK}")), "{screen}");

    top.keys("h");
    let screen = top.shows("locks by longest hold");
    assert_eq!(order(&screen), ["orders/1", LOCK], "{screen}");
    top.keys("/orders\r");
    top.wait_for("one lock", |screen| {
        screen.contains("filter orders") && order(screen) == ["orders/1"]
    });
    // Asked, and then refused.
    top.keys("r");
    top.shows("on orders/1 (fence");
    top.keys("n");
    top.shows("nothing was changed");
    assert_eq!(value(&server, "orders/1")["state"], "held");
    top.keys("r");
    top.shows("on orders/1 (fence");
    top.keys("y");
    top.shows("present this fence to the gate");
    assert_eq!(first.end().code, 76);
    top.keys("\x1b");
    top.wait_for("the other lock alone", |screen| order(screen) == [LOCK]);
    top.keys("q");
    assert_eq!(top.code(), Some(0));
}

/// Its last third is far longer than a look takes.
#[test]
fn a_run_that_was_stopped_looks_dead_before_its_lease_ends() {
    let server = RedisServer::start();
    let run = run(&server, LOCK, &["--ttl", "15s"]);
    held(&server, LOCK);
    let top = top(&server);
    let is = |state: &'static str| {
        move |screen: &str| line(screen, LOCK).is_some_and(|line| line.contains(state))
    };
    top.wait_for("a holder", is(" held "));
    kill(Pid::from_raw(run.pid()), Signal::SIGSTOP).unwrap();
    top.wait_for("a holder that may be dead", is(" dead? "));
    kill(Pid::from_raw(run.pid()), Signal::SIGCONT).unwrap();
}

#[test]
fn hand_overs_are_counted_and_a_pause_stops_the_view() {
    let server = RedisServer::start();
    let first = run(&server, LOCK, &[]);
    held(&server, LOCK);
    let second = run(&server, LOCK, &["--wait-forever"]);
    let mut top = top(&server);
    top.shows("1 locks  1 waiting");
    finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url())).well();
    assert_eq!(first.end().code, 76);
    top.wait_for("a hand-over", |screen| {
        screen.contains("hand-overs ") && !screen.contains("hand-overs 0.0/s")
    });
    top.keys(" ");
    top.shows("PAUSED");
    drop(second);
    top.keys(" ");
    top.wait_for("it goes on", |screen| !screen.contains("PAUSED"));
    top.keys("\x03");
    assert_eq!(top.code(), Some(0));
}

/// Two scripts take two locks in different orders.
#[test]
fn a_possible_cycle_between_processes_is_shown_on_request() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let nested = |mine: &str, other: &str| {
        let (mine_is_held, other_is_held) = (folder.path().join(mine), folder.path().join(other));
        let script = format!(
            "touch {}; until [ -e {} ]; do sleep 0.02; done; exec {PROGRAM} run --wait-forever {mine} {other} --owner-env -- true",
            mine_is_held.display(),
            other_is_held.display()
        );
        Running::start(
            leasehold(["run", mine, "--", "sh", "-c", &script]).env("REDIS_URL", server.url()),
        )
    };
    let _both = [nested("x", "y"), nested("y", "x")];
    // The processes of Redis are the runs: each nested one waits, and holds nothing.
    let mut top = top(&server);
    let screen = top.shows("2 locks  2 waiting  4 processes");
    assert!(!screen.contains("possible"), "{screen}");
    top.keys("c");
    top.wait_for("no cycle", |screen| {
        screen.contains(" possible cycles ") && screen.contains("│none")
    });

    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connect = || LockRuntime::builder().strictness(Strictness::Ignore).connect(server.url());
    let (one, other) =
        tokio.block_on(async { (connect().await.unwrap(), connect().await.unwrap()) });
    let crossed = |locks: &LockRuntime, first: &str, second: &str| {
        let (first, second) = (locks.lock(first).unwrap(), locks.lock(second).unwrap());
        async move {
            let guard = first.acquire().await.unwrap();
            // Until the other one has its first lock, too.
            SystemClock.sleep_until(SystemClock.now() + Duration::from_secs(1)).await;
            drop((second.acquire().wait_forever().await, guard));
        }
    };
    tokio.spawn(crossed(&one, "a/1", "a/2"));
    tokio.spawn(crossed(&other, "a/2", "a/1"));
    // In quotation marks it stands there alone.
    top.shows("\"a/1\"");
    top.keys("c");
    top.wait_for("they are hidden", |screen| !screen.contains("possible"));
}

/// Looking at ten thousand locks, it sends as few commands as at one.
#[test]
fn ten_thousand_locks_cost_the_server_no_more_commands_a_second() {
    let server = RedisServer::start();
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connect =
        LockRuntime::builder().strictness(Strictness::Ignore).ttl(Duration::from_secs(3600));
    // So many tasks at once may keep a busy machine longer than a server is waited for.
    let connect = connect.command_timeout(LIMIT).outage_patience(LIMIT).wait(LIMIT);
    let locks = tokio.block_on(connect.connect(server.url())).unwrap();
    let guards: Vec<_> = tokio.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..10_000 {
            let lock = locks.lock(format!("many/{number}")).unwrap();
            tasks.spawn(async move { lock.acquire().await.unwrap() });
        }
        tasks.join_all().await
    });
    let top = top(&server);
    let screen = top.shows("10000 locks");
    let told = screen.split("steps ").nth(1).unwrap().split("/s").next().unwrap();
    assert!((1..=200).contains(&told.parse::<u32>().unwrap()), "{screen}");
    drop(top);
    tokio.block_on(async { drop(guards) });
}

/// However small the terminal gets, the view goes on, and is whole again when there is room.
#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let server = RedisServer::start();
    let _run = run(&server, LOCK, &[]);
    held(&server, LOCK);
    let mut top = top(&server);
    top.shows("TTL LEFT");
    for (rows, columns) in [(3, 10), (1, 1), (2, 200)] {
        top.resize(rows, columns);
        top.wait_for("a small view", |screen| !screen.contains("TTL LEFT"));
        top.keys("j");
        top.resize(30, 120);
        top.shows("TTL LEFT");
    }
    top.keys("q");
    assert_eq!(top.code(), Some(0));
}

/// At the usual sizes both ends of names and holders are seen, all keys, and the whole question.
#[test]
fn what_matters_is_never_cut() {
    const NAME: &str = "orders/eu-central-1/customers/0000001234567/invoices/2026-11/retry";
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker-that-renders-invoices-of-the-month");
    std::os::unix::fs::symlink("/bin/sleep", &worker).unwrap();
    let words = ["run", NAME, "--", worker.to_str().unwrap(), "100"];
    let _holder = Running::start(leasehold(words).env("REDIS_URL", server.url()));
    held(&server, NAME);
    let _others = ["backups/eu", "reports/daily"].map(|name| run(&server, name, &[]));
    let _waiter = run(&server, NAME, &["--wait-forever"]);
    for size in [(24, 80), (30, 100), (50, 160)] {
        let mut top = Terminal::of_size(size, &[PROGRAM, "top"], [("REDIS_URL", server.url())]);
        let screen = top.wait_for("all locks, and the frames below them", |screen| {
            // The keys take two lines on the narrow one.
            let is_whole = screen.lines().rev().take(3).any(|line| line.starts_with('└'));
            screen.contains("3 locks  1 waiting") && is_whole
        });
        let lines: Vec<_> = screen.lines().map(str::trim_end).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= size.1.into()), "{screen}");
        let lock = lines.iter().find(|line| line.starts_with("│orders/")).expect("its line");
        assert!(lock.contains("…") && lock.contains("/retry held "), "{screen}");
        assert!(lock.ends_with("month│"), "{screen}");
        assert!(lines[0].ends_with(" processes") && lines[1].contains(")  look "), "{screen}");
        assert!(lines[lines.len() - 1].ends_with("q quit"), "{screen}");
        top.keys("r");
        let asked = |screen: &str| screen.lines().last().unwrap_or_default().trim_end().to_owned();
        let screen = top.wait_for("the whole question", |screen| asked(screen).ends_with("[y/N]"));
        let question = asked(&screen);
        assert!(question.starts_with("end the lease of "), "{screen}");
        assert!(question.contains("month on orders/"), "{screen}");
        assert!(question.contains("/retry (fence "), "{screen}");
        top.keys("n");
        top.shows("nothing was changed");
        top.keys("q");
        assert_eq!(top.code(), Some(0));
    }
}

/// It gives the terminal back, as with the key.
#[test]
fn signals_end_it_as_the_key_does() {
    let server = RedisServer::start();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut top = top(&server);
        top.shows("locks by most wanted");
        kill(Pid::from_raw(top.pid()), signal).unwrap();
        assert_eq!(top.code(), Some(0));
        top.wait_for("the screen of before", |screen| !screen.contains("most wanted"));
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let ended = finished(leasehold(["top"]).env("REDIS_URL", "redis://127.0.0.1:1"));
    assert!(ended.complaint(64).contains("ls --json"));
}
