use leasehold::{Released, store::Inspection};
use leasehold_testkit::{LockText, RedisServer};

use super::scene::{connect, key, use_lock};
use crate::support::{lease, matrix::row, wait};

row! {
    holds_overflow: protected, control;
    fault: "the count of nested holds in Redis is the greatest number",
    right: "the count in memory decides: the next change writes the right count again",
    control: "HINCRBY 1 and HINCRBY -1",
}

/// As large as the text of a lock has room for.
const WIDEST: u64 = 9_999_999_999;
/// As large as numbers of a hash can be, where the control counts.
const GREATEST: u64 = i64::MAX.unsigned_abs();

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let locks = connect(&server.url()).await;
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        let lease = key("a", "lease");
        let counted = || LockText::of(&server, &lease).holds.map(|(count, _)| count);
        let spoil = || {
            LockText::change(&server, &lease, |text| {
                text.holds = Some((WIDEST, text.holds.map_or(0, |(_, number)| number)));
            });
        };
        let mut nested = Vec::new();
        for holds in 2..=200 {
            spoil();
            nested.push(guard.reenter().await.expect("the lease is held"));
            assert_eq!(counted(), Some(holds));
        }
        let Ok(Inspection::Held(record)) = locks.inspect("a").await else { panic!("it is held") };
        assert_eq!((record.holds, record.fence), (200, guard.fence()));
        let entered = nested.len();
        while let Some(inner) = nested.pop() {
            spoil();
            let released = inner.release().await.expect("the lease is held");
            let Released::StillHeld(left) = released else { panic!("{released:?}") };
            assert_eq!(counted(), Some(left.get().into()));
        }
        assert!(matches!(guard.release().await, Ok(Released::Ended)));
        assert!(!lease::is_held(&server, &lease));
        use_lock(&locks, "a").await;
        format!("{entered} re-entries counted exactly, the last release ends it")
    })
}

const ENTER: &str = "return redis.call('HINCRBY', KEYS[1], ARGV[1], 1)";
const LEAVE: &str = "\
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 'held' end
redis.call('DEL', KEYS[1])
return 'ended'";

fn control() -> String {
    let server = RedisServer::start();
    server.command(&["HSET", "lease", "me", &GREATEST.to_string()]);
    let entered = server.try_query::<i64>(&["EVAL", ENTER, "1", "lease", "me"]);
    assert!(entered.is_err(), "{entered:?}");
    let releases = 100;
    let leave = || server.query::<String>(&["EVAL", LEAVE, "1", "lease", "me"]);
    assert!((0..releases).all(|_| leave() == "held"), "the control came to no harm");
    format!("re-entry fails; the lock is taken after {releases} releases")
}
