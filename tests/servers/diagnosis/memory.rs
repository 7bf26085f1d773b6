//! Locks that are used once each leave keys that fill the memory of a server.

use leasehold::diagnosis::{Severity, Topic};

use super::{about, diagnose, sound, tells, the_one};

/// As many keys as jobs of a day leave, beside as many of others.
const JOBS: &str = "for n = 1, 20000 do \
    redis.call('SET', 'leasehold:{jobs/' .. n .. '}:lease', 'v3 1764509000123456 1764509000123') \
    redis.call('SET', 'orders:' .. n, 'paid') end";

#[tokio::test]
async fn locks_that_take_a_tenth_of_the_memory_are_told() {
    let server = sound().arg("maxmemory", "30mb").start();
    server.command(&["EVAL", JOBS, "0"]);
    let diagnosis = diagnose(&server.url()).await;
    let finding = the_one(&diagnosis, Topic::Memory);
    tells(finding, Severity::Notice, "", &["maxmemory", "for 168 h", "--retention"]);
    server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    assert!(about(&diagnose(&server.url()).await, Topic::Memory).is_empty());
}
