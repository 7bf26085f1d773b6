use std::time::Duration;

use leasehold::Released;
use leasehold_testkit::{Patience, RedisServer};

use super::{refusal, scene};
use crate::support::{matrix::row, wait};

row! {
    busy_script: protected, control;
    fault: "an endless script keeps the server busy, until SCRIPT KILL",
    right: "a clear error for tries; waiters are served afterwards; a held lease survives",
    control: "a lock that fails at the first error",
}

const TTL: Duration = Duration::from_secs(8);
const ENDLESS: &[&str] = &["EVAL", "while true do end", "0"];

fn start() -> RedisServer {
    RedisServer::builder().arg("lua-time-limit", "100").start()
}

fn kill_script(server: &RedisServer) {
    let kill = || server.try_query::<String>(&["SCRIPT", "KILL"]).ok();
    assert!(Patience::of(wait::CEILING).until(kill).is_some(), "the script was not killed");
}

fn protected() -> String {
    scene::run(async {
        let server = start();
        let locks = scene::connect(&server.url(), TTL).await;
        let held = scene::take(&locks, "held").await;
        let endless = scene::apart(&server, ENDLESS);
        scene::until_refused(&server, "BUSY");
        refusal::of(&locks, "free", "BUSY", "SCRIPT KILL").await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { scene::take(&locks, "free").await }
        });
        let refused = locks.lock("third").expect("a name").acquire().wait(Duration::from_secs(2));
        let refused = refused.await.expect_err("nobody is served").to_string();
        refusal::assert_says(&refused, &["lock \"third\"", "BUSY", "SCRIPT KILL"]);
        assert!(held.is_held(), "{:?}", held.lease().state());
        assert!(!waiting.is_finished(), "{:?}", waiting.await);
        kill_script(&server);
        assert!(endless.join().expect("the thread ends").is_err());
        let next = waiting.await.expect("a lease");
        for guard in [held, next] {
            assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        "2 clear errors; the waiter was served, the held lease survived".into()
    })
}

fn control() -> String {
    scene::run(async {
        let server = start();
        let mut lock = scene::naive(&server, TTL).await;
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        let endless = scene::apart(&server, ENDLESS);
        scene::until_refused(&server, "BUSY");
        let error = lock.try_acquire().await.expect_err("the script blocks");
        assert_eq!(error.code(), Some("BUSY"), "{error}");
        let released = lock.release(&held).await;
        assert!(released.is_err(), "{released:?}");
        kill_script(&server);
        assert!(endless.join().expect("the thread ends").is_err());
        assert!(lock.try_acquire().await.expect("an answer").is_none(), "it was released");
        "acquire and release failed at once; the lock stayed taken".into()
    })
}
