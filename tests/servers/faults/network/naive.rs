//! What many write by hand, on a connection for each command.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use leasehold_testkit::proxy::{Action, Rule};
use redis::{Client, Connection, FromRedisValue, RedisResult};

use super::net::Net;
use crate::support::wait;

/// How long an answer may take before the naive client tries again.
const PATIENCE: Duration = Duration::from_millis(500);

/// Runs a command on a connection of its own.
pub(super) fn ask<T: FromRedisValue>(url: &str, words: &[&str]) -> RedisResult<T> {
    let mut connection = connect(url)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    command(words).query(&mut connection)
}

/// Runs a command again and again until it is answered; how often, and the answer.
pub(super) fn ask_until_answered<T: FromRedisValue>(url: &str, words: &[&str]) -> (u32, T) {
    let mut attempts = 0;
    loop {
        attempts += 1;
        assert!(attempts < 20, "{words:?} is never answered");
        if let Ok(answer) = ask(url, words) {
            return (attempts, answer);
        }
    }
}

/// Takes a free lock; whether it was free.
pub(super) fn set_nx(url: &str, key: &str, id: &str, ttl: &str) -> bool {
    let words = ["SET", key, id, "NX", "PX", ttl];
    ask::<Option<String>>(url, &words).expect("an answer").is_some()
}

/// The reentrant lock with a counter that is increased and decreased, each command repeated until
/// it is answered: takes it, gives it back, and says how many holds are left.
fn count_up_and_down(url: &str) -> i64 {
    let (attempts, _) = ask_until_answered::<i64>(url, &["HINCRBY", "lock", "me", "1"]);
    ask::<i64>(url, &["PEXPIRE", "lock", "60000"]).expect("an answer");
    assert_eq!(attempts, 2, "its answer was lost once");
    ask(url, &["HINCRBY", "lock", "me", "-1"]).expect("an answer")
}

/// Loses the answer to an increment: the one hold is counted twice, and is still there after its
/// release. `action` is what happens to the answer.
pub(super) fn counts_twice(action: Action) {
    let net = Net::start();
    let rule = net.proxy.inject(Rule::new(action).replies().containing("HINCRBY"));
    let left = count_up_and_down(&net.url());
    assert_eq!((net.proxy.struck(rule), left), (1, 1));
    assert!(!set_nx(&net.url(), "lock", "other", "1000"));
}

/// A connection whose reads give up at last.
pub(super) fn connect(url: &str) -> RedisResult<Connection> {
    let connection = Client::open(url)?.get_connection_with_timeout(wait::CEILING)?;
    connection.set_read_timeout(Some(wait::CEILING))?;
    Ok(connection)
}

pub(super) fn command(words: &[&str]) -> redis::Cmd {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command
}

/// A waiter that tries once and then only waits for its message, on the connection it has.
#[derive(Debug)]
pub(super) struct PushedWaiter {
    has_it: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl PushedWaiter {
    const CHANNEL: &str = "freed";

    /// Subscribes; the lock is taken.
    fn start(url: &str) -> Self {
        let (has_it, mut connection) =
            (Arc::<AtomicBool>::default(), connect(url).expect("a connection"));
        let (ready, is_ready) = mpsc::channel();
        let (url, told) = (url.to_owned(), Arc::clone(&has_it));
        // It ends with its connection, which the network ends.
        let thread = thread::spawn(move || {
            let mut messages = connection.as_pubsub();
            messages.subscribe(Self::CHANNEL).expect("a subscription");
            let _ = ready.send(set_nx(&url, "lock", "waiter", "60000"));
            while !told.load(Ordering::Relaxed) && messages.get_message().is_ok() {
                told.store(set_nx(&url, "lock", "waiter", "60000"), Ordering::Relaxed);
            }
        });
        assert!(!is_ready.recv().expect("it waits"), "the lock was free");
        Self { has_it, thread }
    }

    /// Waits until its connection is gone.
    pub(super) fn until_deaf(&self) {
        wait::block_until("the connection ends", || self.thread.is_finished());
    }

    fn has_it(&self) -> bool {
        self.has_it.load(Ordering::Relaxed)
    }
}

/// Frees a lock for such a waiter, whose message a fault keeps from it, and sees that it never gets
/// the lock; without the fault it does.
pub(super) fn waits_in_vain(net: &Net, fault: impl FnOnce(&PushedWaiter)) -> String {
    let set_free = || {
        net.server.command(&["DEL", "lock"]);
        net.server.query::<u64>(&["PUBLISH", PushedWaiter::CHANNEL, "now"])
    };
    let take = || assert!(set_nx(&net.url(), "lock", "holder", "60000"));
    take();
    let waiter = PushedWaiter::start(&net.url());
    set_free();
    wait::block_until("the message comes", || waiter.has_it());
    net.server.command(&["DEL", "lock"]);
    take();
    let waiter = PushedWaiter::start(&net.url());
    fault(&waiter);
    set_free();
    let freed_at = net.server.micros();
    wait::block_until("a second passes", || net.server.micros() > freed_at + 1_000_000);
    assert!(!waiter.has_it(), "it has the lock");
    assert!(!net.server.query::<bool>(&["EXISTS", "lock"]));
    "it waits for a lock that is free, for ever".into()
}
