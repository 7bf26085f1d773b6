use std::collections::{BTreeMap, BTreeSet};

use leasehold_testkit::{RedisServer, cluster::slot_of};

use super::scene::connect;
use crate::support::{matrix::row, wait};

row! {
    name_collisions: protected, control;
    fault: "names with braces, colons, suffixes of keys, unicode, and of the greatest length",
    right: "refused; or each lock has its own keys, all in one cluster slot",
    control: "the name is the key, the name with `:fence` the counter",
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a",
        "a:fence",
        "a:lease",
        "a}:queue",
        "a}:lease",
        "a}b",
        "{a}",
        "{a",
        "{}x",
        "{{a}}",
        "a{}",
        "a}:withdrawn",
        "leasehold:{a}:lease",
        " ",
        "\n",
        "*",
        "ä/ö/✓",
        "a\u{301}",
        "á",
    ]
    .map(str::to_owned)
    .into();
    names.push("x".repeat(512));
    names.push(format!("{}:fence", "x".repeat(506)));
    names
}

fn keys(server: &RedisServer) -> BTreeSet<String> {
    server.query::<Vec<String>>(&["KEYS", "*"]).into_iter().collect()
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
        for bad in ["", "}", "}x", "}{a}", "a\0b", &"x".repeat(513)] {
            assert!(locks.lock(bad).is_err(), "{bad:?}");
        }
        server.flush_all();
        let (mut held, mut owners) = (Vec::new(), BTreeMap::new());
        for name in names() {
            let before = keys(&server);
            let guard = locks.lock(&name).expect("a name").try_acquire().await.expect("an answer");
            let guard = guard.unwrap_or_else(|| panic!("{name:?} is another lock's"));
            let waits = others.lock(&name).expect("a name").acquire().wait_forever();
            let waiter = tokio::spawn(waits);
            // Lease, queue and waiters: none of them was another lock's.
            let made = || keys(&server).difference(&before).cloned().collect::<BTreeSet<_>>();
            wait::until("three keys are made", || made().len() == 3).await;
            let made = made();
            let slots: BTreeSet<u16> = made.iter().map(|key| slot_of(key)).collect();
            assert_eq!(slots.len(), 1, "{made:?}");
            owners.extend(made.into_iter().map(|key| (key, name.clone())));
            held.push((guard, waiter));
        }
        let locks = held.len();
        assert_eq!(owners.len(), 3 * locks);
        for (guard, waiter) in held {
            let name = guard.name().clone();
            guard.release().await.expect("held to the end");
            let next = wait::soon("the waiter has it", waiter).await.expect("no panic");
            let next = next.expect("a lease");
            assert_eq!(next.name(), &name);
            next.release().await.expect("held to the end");
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("6 refused; {locks} locks, {} keys, one slot each", owners.len())
    })
}

const NAIVE: &str = "\
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 60000) then
  return redis.call('INCR', KEYS[2])
end
return 0";

fn control() -> String {
    let server = RedisServer::start();
    let (mut taken, mut scattered) = (0, 0);
    for name in names() {
        let counter = format!("{name}:fence");
        scattered += usize::from(slot_of(&name) != slot_of(&counter));
        let answer = server.try_query::<u64>(&["EVAL", NAIVE, "2", &name, &counter, "me"]);
        // Zero: the counter of another lock is in its place.
        taken += usize::from(answer != Ok(1));
    }
    assert!(taken > 0 && scattered > 0, "{taken} {scattered}");
    format!("{taken} of them meets another's counter; {scattered} lie in two slots")
}
