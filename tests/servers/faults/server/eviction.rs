use leasehold_testkit::{Patience, RedisServer};

use super::scene::{self, set};
use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
    wait,
};

row! {
    eviction: protected, control;
    fault: "a full server evicts the lease of a holder with its counter, twice (allkeys-random)",
    right: "the holder learns of the loss; the late write is refused; fences grow",
    control: "a plain counter",
}

/// Fills the server, and tells whether a key is there; it is asked before anything is written.
const FILL: &str = "\
local exists = redis.call('EXISTS', KEYS[1])
for i = 1, 300 do
  redis.call('SET', 'filler:' .. redis.call('INCR', 'fillers') .. ':' .. ARGV[2], ARGV[1])
end
return exists";

fn protected() -> String {
    let server = RedisServer::start();
    let finished = evict(&scene::ONE_TASK, &server, scene::LEASE, scene::LEASE);
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    scene::leaves_nothing(&server);
    let evicted = server.told("stats", "evicted_keys");
    assert!(evicted > 0);
    seen
}

fn control() -> String {
    let server = RedisServer::start();
    let plan = Plan { tasks: 1, ..Plan::NAIVE };
    evict(&plan, &server, "naive:{value}", "naive:{value}:counter").wrong()
}

/// Fills the server until the lease of a halted holder has gone, and then until the counter has.
/// They may be one key, which goes twice.
fn evict(plan: &Plan, server: &RedisServer, lease: &str, counter: &str) -> Finished {
    let mut crew = Crew::start(plan, &server.url());
    crew.work(20);
    let read = crew.halt(0);
    set(server, "maxmemory-policy", "allkeys-random");
    set(server, "maxmemory", "4mb");
    fill_until_gone(server, lease);
    crew.until_above(read);
    crew.resume(0);
    fill_until_gone(server, counter);
    set(server, "maxmemory", "0");
    crew.work(20);
    crew.finish()
}

fn fill_until_gone(server: &RedisServer, key: &str) {
    let filler = "x".repeat(1000);
    let mut round = 0;
    let evicted = Patience::of(wait::CEILING).until(|| {
        round += 1;
        let call = ["EVAL", FILL, "1", key, &filler, &format!("{key}:{round}")];
        let exists: bool = server.try_query(&call).unwrap_or(true);
        (!exists).then_some(())
    });
    assert!(evicted.is_some(), "{key} was not evicted");
}
