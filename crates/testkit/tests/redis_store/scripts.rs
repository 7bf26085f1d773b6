//! Scripts that the server has forgotten are sent again, with their text.

use leasehold_core::store::{
    ForceReleaseAnswer, HoldAnswer, Inspection, ReleaseAnswer, RenewAnswer,
};
use leasehold_testkit::{
    RedisServer,
    contract::{alice, ttl},
};

use redis::Value;

use crate::support::{calls, granted, store_on};

#[tokio::test]
async fn every_command_survives_a_script_flush() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let forget = || server.command(&["SCRIPT", "FLUSH"]);

    forget();
    let fence = granted(&calls, alice(1)).await;
    forget();
    let held = calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect("hold");
    assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
    forget();
    let batch = [calls.renewal(alice(1), fence, ttl(60))];
    let renewed = calls.renew(&batch).await.expect("renew");
    assert!(matches!(renewed[..], [RenewAnswer::Renewed { .. }]), "{renewed:?}");
    forget();
    let inspected = calls.inspect().await.expect("inspect");
    assert!(matches!(inspected, Inspection::Held(_)), "{inspected:?}");
    forget();
    let released = calls.release(alice(1), fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
    granted(&calls, alice(2)).await;
    forget();
    assert!(calls.withdraw(alice(2)).await.expect("withdraw"));
    let fence = granted(&calls, alice(3)).await;
    forget();
    let forced = calls.force_release(alice(3), fence).await.expect("force_release");
    assert!(matches!(forced, ForceReleaseAnswer::Ended { .. }), "{forced:?}");
}

#[test]
fn an_acquire_without_a_ttl_writes_nothing() {
    let script = include_str!("../../../core/src/lua/acquire.lua");
    let server = RedisServer::start();
    for ttl in ["0", "-1", "x", ""] {
        let keys = ["3", "{a}:lease", "{a}:fence", "{a}:withdrawn"];
        let words = ["EVAL", script].into_iter().chain(keys).chain(["id", ttl, "0", "60000", "me"]);
        let answer = server.try_query::<Value>(&words.collect::<Vec<_>>());
        let error = answer.expect_err("a lease needs a ttl");
        assert!(error.to_string().contains("ttl above 0 ms"), "{error}");
        assert_eq!(server.query::<u64>(&["DBSIZE"]), 0, "{ttl:?}");
    }
}

#[tokio::test]
async fn a_script_is_sent_with_its_text_once() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let sent = |command: &str| -> u64 {
        let stats: String = server.query(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| {
            line.strip_prefix(&format!("cmdstat_{command}:calls="))?.split(',').next()
        });
        line.map_or(0, |count| count.parse().expect("a number"))
    };
    server.command(&["CONFIG", "RESETSTAT"]);
    for number in 0..10 {
        let fence = granted(&calls, alice(number)).await;
        calls.release(alice(number), fence, None).await.expect("release");
    }
    assert_eq!((sent("eval"), sent("evalsha")), (2, 20));
}
