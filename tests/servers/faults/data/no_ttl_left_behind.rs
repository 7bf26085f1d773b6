use std::time::Duration;

use leasehold_testkit::{Patience, RedisServer};

use crate::support::{
    crew::{Crew, Plan},
    matrix::row,
    raw, wait,
};

row! {
    no_ttl_left_behind: protected, control;
    fault: "rights and memory are taken away and given back while processes work",
    right: "no increment is lost, and each key of a lock always has a time to live",
    control: "HSET and then PEXPIRE, under the same faults",
}

const ALL: [&str; 3] = ["~*", "&*", "+@all"];
const TAKEN: [&[&str]; 12] = [
    &["-pexpire"],
    &["-set"],
    &["-getrange"],
    &["-getex"],
    &["-hset"],
    &["-hstrlen"],
    &["-hdel"],
    &["-zadd"],
    &["-evalsha", "-eval"],
    &["resetkeys"],
    &["resetchannels", "-publish"],
    // Not a right, but memory.
    &[],
];

fn start() -> (RedisServer, String) {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "reset", "on", ">s3cret"]);
    server.command(&[&["ACL", "SETUSER", "app"], &ALL[..]].concat());
    let url = server.url_with("app", "s3cret", 0);
    (server, url)
}

fn take(server: &RedisServer, taken: &[&str]) {
    if taken.is_empty() {
        server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    } else {
        server.command(&[&["ACL", "SETUSER", "app"], taken].concat());
    }
}

fn give_back(server: &RedisServer) {
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    server.command(&[&["ACL", "SETUSER", "app"], &ALL[..]].concat());
}

/// How long a right is taken that may not be needed.
const SHORT: Duration = Duration::from_secs(1);

/// Processes and their tasks. The queue of two is often empty, so that it is made anew, with its time
/// to live. That of more is hardly ever: they hand the lock over, and may need no `PEXPIRE` for long.
const CREWS: [(usize, usize); 2] = [(2, 1), (3, 2)];

fn protected() -> String {
    let refused: u64 = CREWS.into_iter().map(|(processes, tasks)| robbed(processes, tasks)).sum();
    format!("{refused} commands refused, 0 keys without ttl, no increment lost")
}

/// Takes each right from processes at work, and returns how many commands were refused.
fn robbed(processes: usize, tasks: usize) -> u64 {
    let (server, url) = start();
    // What cannot be released is waited out.
    let ttl = Duration::from_millis(400);
    let crew = Crew::start(&Plan { processes, tasks, ttl, ..Plan::PROTECTED }, &url);
    crew.work(5);
    let errors = || server.told("stats", "total_error_replies");
    let before = errors();
    for taken in TAKEN {
        let is_needed = processes == 2 || taken != ["-pexpire"];
        let patience = if is_needed { wait::CEILING } else { SHORT };
        let told = errors();
        take(&server, taken);
        let struck = Patience::of(patience).until(|| {
            assert_eq!(server.keys_without_ttl(), [""; 0], "{taken:?}");
            (errors() > told + 12).then_some(())
        });
        assert!(struck.is_some() || !is_needed, "nobody misses {taken:?}");
        give_back(&server);
        crew.work(5);
        assert_eq!(server.keys_without_ttl(), [""; 0], "{taken:?}");
    }
    let refused = errors() - before;
    crew.finish().right();
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    refused
}

const NAIVE: &str = "\
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

fn control() -> String {
    wait::on_one_thread(async {
        let (server, url) = start();
        let mut raw = raw::connect(&url).await;
        for (number, taken) in TAKEN.into_iter().enumerate() {
            take(&server, taken);
            let script = redis::Script::new(NAIVE);
            let mut call = script.key(format!("lock/{number}"));
            let _ = call.arg("me").arg(60_000).invoke_async::<i64>(&mut raw).await;
            give_back(&server);
        }
        let left = server.keys_without_ttl().len();
        assert!(left > 0, "the control came to no harm");
        format!("{left} key without ttl after {} faults", TAKEN.len())
    })
}
