use std::time::Duration;

use leasehold_testkit::{Patience, RedisServer};

use super::scene::{block_on, stat};
use crate::support::{
    crew::{Crew, Plan},
    matrix::Row,
    raw, wait,
};

const ROW: Row = Row {
    id: "no-ttl-left-behind",
    fault: "rights and memory are taken away and given back while processes work",
    right: "no increment is lost, and each key of a lock always has a time to live",
    control: "HSET and then PEXPIRE, under the same faults",
};

#[test]
fn no_ttl_left_behind() {
    ROW.run(protected, control);
}

const ALL: [&str; 3] = ["~*", "&*", "+@all"];
const TAKEN: [&[&str]; 9] = [
    &["-pexpire"],
    &["-hset"],
    &["-hmget"],
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

fn protected() -> String {
    let (server, url) = start();
    // What cannot be released is waited out.
    let plan = Plan { ttl: Duration::from_millis(400), ..Plan::PROTECTED };
    let crew = Crew::start(&plan, &url);
    crew.work(5);
    let errors = || stat(&server, "stats", "total_error_replies:");
    let before = errors();
    for taken in TAKEN {
        let told = errors();
        take(&server, taken);
        let struck = Patience::of(wait::CEILING).until(|| {
            assert_eq!(server.keys_without_ttl(), [""; 0], "{taken:?}");
            (errors() > told + 12).then_some(())
        });
        assert!(struck.is_some(), "nobody misses {taken:?}");
        give_back(&server);
        crew.work(5);
        assert_eq!(server.keys_without_ttl(), [""; 0], "{taken:?}");
    }
    let refused = errors() - before;
    let finished = crew.finish();
    assert!(finished.troubles().count() > 0, "tasks were told");
    finished.right();
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    format!("{refused} commands refused, 0 keys without ttl, no increment lost")
}

const NAIVE: &str = "\
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

fn control() -> String {
    block_on(async {
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
