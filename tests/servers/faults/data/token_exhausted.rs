use leasehold::{Fence, Released, error::StoreErrorKind::Corrupt};
use leasehold_testkit::{LockText, RedisServer};

use super::scene::{assert_says, connect, key, refusal, use_lock};
use crate::support::{lease, matrix::row, wait};

row! {
    token_exhausted: protected, control;
    fault: "the fence counter is at 2^53-1, the greatest number that a Lua number holds exactly",
    right: "the last token is given once; then acquires are refused, releases work",
    control: "a script that adds one to a Lua number",
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let locks = connect(&server.url()).await;
        let (lock, lease) = (locks.lock("a").expect("a name"), key("a", "lease"));
        let last_but_one = format!("v4 x------- {} 0000000000000", Fence::MAX - 1);
        server.command(&["SET", &lease, &last_but_one, "PX", "3600000"]);

        let guard = lock.acquire().await.expect("the last token");
        assert_eq!(guard.fence().get(), Fence::MAX);
        let inner = guard.reenter().await.expect("the same lease");
        inner.release().await.expect("held to the end");
        assert!(matches!(guard.release().await, Ok(Released::Ended)));

        let (asks, fresh) = (5, connect(&server.url()).await);
        for locks in [&locks, &fresh] {
            for _ in 0..asks {
                let error = refusal(locks.lock("a").expect("a name").acquire().await);
                assert_says(&error, Corrupt, &["lock \"a\"", "greatest value", "delete its key"]);
            }
        }
        assert!(!lease::is_held(&server, &lease));
        assert_eq!(LockText::of(&server, &lease).last(), Fence::MAX);
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        // Others are not concerned.
        use_lock(&locks, "b").await;
        format!("2^53-1 given once, {} acquires refused, nothing wrapped", 2 * asks)
    })
}

/// Adds one to what is there.
const NAIVE: &str = "\
local token = string.format('%.0f', tonumber(redis.call('GET', KEYS[1])) + 1)
redis.call('SET', KEYS[1], token)
return token";

fn control() -> String {
    let server = RedisServer::start();
    server.command(&["SET", "counter", &Fence::MAX.to_string()]);
    let next = || server.query::<String>(&["EVAL", NAIVE, "1", "counter"]);
    let given = [next(), next(), next()];
    assert!(given[1] == given[0] && given[2] == given[0], "{given:?}");
    format!("{} is given 3 times", given[0])
}
