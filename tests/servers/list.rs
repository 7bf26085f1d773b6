//! A list of very many locks on a real server: every lock once, and no step is long.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{LockRuntime, error::ListError, error::StoreErrorKind, store::Inspection};
use leasehold_testkit::RedisServer;
use redis::Value;

const MANY: usize = 10_000;

/// Takes so many locks, as `grant.lua` writes them.
const TAKE: &str = "
local time = redis.call('TIME')
local seconds = tonumber(time[1])
local micros = time[1] .. string.sub('00000' .. time[2], -6)
for n = 1, ARGV[1] do
  local key = 'leasehold:{many/' .. string.format('%05d', n) .. '}:lease'
  redis.call('SET', key, 'v4 x------- ' .. micros .. ' ' .. (seconds + 900) * 1000 .. ' ' .. micros .. ' ' .. micros
    .. ' ' .. (seconds + 600) * 1000 .. ' 00000000-0000-0000-0000-000000000000:' .. n .. ' somebody', 'PX', 600000)
end
return 'taken'";

/// The queue of a lock that is held: places of dead processes, and one that lives behind them.
const QUEUE: &str = "
local key = 'leasehold:{many/00001}:'
local text = redis.call('GET', key .. 'lease')
redis.call('SET', key .. 'lease', 'v4 xw' .. string.sub(text, 6), 'KEEPTTL')
for n = 1, ARGV[1] do
  redis.call('ZADD', key .. 'queue', n, string.format('00000000-0000-0000-0000-%012d', n))
end
redis.call('PEXPIRE', key .. 'queue', 600000)
return 'queued'";

fn run(server: &RedisServer, script: &str, count: usize) {
    server.command(&["EVAL", script, "0", &count.to_string()]);
}

/// What the server has run since its log was emptied: each command with its first words.
fn log(server: &RedisServer) -> Vec<Vec<String>> {
    let entries: Vec<Vec<Value>> = server.query(&["SLOWLOG", "GET", "100000"]);
    let words = |entry: Vec<Value>| {
        let words: Vec<String> = redis::from_redis_value(entry[3].clone()).unwrap();
        words.into_iter().map(|word| word.to_lowercase()).collect()
    };
    entries.into_iter().map(words).collect()
}

#[tokio::test]
async fn ten_thousand_locks_are_listed_in_short_steps() {
    let server = RedisServer::start();
    let locks = LockRuntime::connect(server.url()).await.unwrap();
    run(&server, TAKE, MANY);
    // Of others in the same database.
    server.command(&["SET", "leasehold", "others"]);
    server.command(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    server.command(&["SLOWLOG", "RESET"]);
    server.command(&["CONFIG", "RESETSTAT"]);

    let (mut list, mut names, mut most) = (locks.list("many/*").unwrap(), BTreeSet::new(), 0);
    while let Some(lock) = list.next().await {
        let lock = lock.unwrap();
        assert_eq!(lock.lease.label, "somebody");
        assert!(names.insert(lock.name.clone()), "{} comes twice", lock.name);
    }
    assert_eq!(names.len(), MANY);

    let log = log(&server);
    let (mut scans, mut viewed) = (0, 0);
    for words in &log {
        match words[0].as_str() {
            "scan" => {
                scans += 1;
                assert_eq!(words[2..], ["match", "leasehold:{many/*}:lease", "count", "250"]);
            }
            "evalsha" | "eval" => {
                let keys: usize = words[2].parse().unwrap();
                viewed += 1;
                most = most.max(keys / 4);
            }
            _ => {}
        }
    }
    // A server may look at more places than there are keys.
    assert!((MANY / 250..MANY / 25).contains(&scans), "{scans} scans");
    assert!((MANY / 8..=MANY / 8 + scans + 1).contains(&viewed), "{viewed} looks");
    assert_eq!(most, 8);
    // One for each lock, and one for the others' key of the same prefix is not there.
    assert_eq!(server.calls("getrange"), MANY as u64);
    assert_eq!((server.calls("zrange"), server.calls("hstrlen")), (0, 0));
    assert!(locks.shutdown(Duration::from_secs(5)).await.unreleased.is_empty());
}

#[tokio::test]
async fn a_look_at_a_long_queue_is_bounded() {
    let server = RedisServer::start();
    let locks = LockRuntime::connect(server.url()).await.unwrap();
    run(&server, TAKE, 1);
    run(&server, QUEUE, 5_000);
    server.command(&["CONFIG", "RESETSTAT"]);
    let Inspection::Held(lease) = locks.inspect("many/00001").await.unwrap() else {
        panic!("held")
    };
    assert!(lease.waiters.is_empty(), "all of them are dead");
    let counted = ["getrange", "zrange", "hstrlen"].map(|command| server.calls(command));
    assert_eq!(counted, [1, 8, 1024]);
}

#[tokio::test]
async fn a_key_that_is_no_lock_is_an_item_and_not_the_end() {
    let server = RedisServer::start();
    let locks = LockRuntime::connect(server.url()).await.unwrap();
    run(&server, TAKE, 40);
    server.command(&["SET", "leasehold:{many/00007}:lease", "nonsense"]);
    server.command(&["LPUSH", "leasehold:{many/list}:lease", "nonsense"]);
    server.command(&["HSET", "leasehold:{many/older}:lease", "v", "2"]);
    server.command(&["SET", "leasehold:{}many}:lease", "a name that no lock has"]);
    let (mut list, mut found, mut bad) = (locks.list("*").unwrap(), 0, Vec::new());
    while let Some(lock) = list.next().await {
        match lock {
            Ok(_) => found += 1,
            Err(ListError::Lock(error)) => {
                bad.push((error.lock().unwrap().to_string(), error.kind()));
            }
            Err(other) => panic!("{other}"),
        }
    }
    bad.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("many/00007", StoreErrorKind::Corrupt),
        ("many/list", StoreErrorKind::Corrupt),
        ("many/older", StoreErrorKind::Config),
    ];
    assert_eq!(bad, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(found, 39);
    assert_eq!(locks.wait_graph().await.unread.len(), 3);
}
