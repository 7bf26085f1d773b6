use std::time::Duration;

use leasehold::error::{AcquireError, ConnectError, OptionsError};
use leasehold_core::Ttl;
use leasehold_testkit::RedisServer;

use super::scene::{connect, exists, use_lock};
use crate::support::{matrix::row, patient, wait};

row! {
    ttl_out_of_range: protected, control;
    fault: "a ttl of zero, of less than 100 ms, of more than a day, or of 2^63-1 ms",
    right: "the builder and the acquire refuse it, with the range; nothing is sent",
    control: "a script that runs HSET and then PEXPIRE with any value",
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let locks = connect(&server.url()).await;
        let lock = locks.lock("a").expect("a name");
        use_lock(&locks, "b").await;
        let ttls = [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_millis(99),
            Ttl::MAX + Duration::from_nanos(1),
            Duration::from_millis(i64::MAX as u64),
            Duration::MAX,
        ];
        let seen = || {
            let accepted = server.told("stats", "total_connections_received");
            (accepted, server.calls("evalsha"))
        };
        let (accepted, sent) = seen();
        for ttl in ttls {
            let error =
                patient::builder().ttl(ttl).connect(&server.url()).await.expect_err("no ttl");
            assert!(matches!(error, ConnectError::Setting(_)), "{error}");
            assert!(error.to_string().contains("choose one between 100ms and 86400s"), "{error}");
            let errors = [
                lock.acquire().ttl(ttl).await.expect_err("no ttl"),
                lock.acquire().ttl(ttl).try_acquire().await.expect_err("no ttl"),
            ];
            for error in errors {
                let AcquireError::Options { option: OptionsError::Setting(_), .. } = error else {
                    panic!("{error}")
                };
                let words = ["lock \"a\"", "choose one between 100ms and 86400s"];
                assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
            }
        }
        // The test's own look makes two connections more.
        assert_eq!(seen(), (accepted + 2, sent));
        for ttl in [Ttl::MIN, Ttl::MAX] {
            lock.acquire().ttl(ttl).await.expect("in range").release().await.expect("held");
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{} refusals name the range; nothing sent", 3 * ttls.len())
    })
}

const NAIVE: &str = "\
if redis.call('EXISTS', KEYS[1]) == 1 then return 'taken' end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'yours'";

fn control() -> String {
    let server = RedisServer::start();
    let ask =
        |lock: &str, ttl: &str| server.try_query::<String>(&["EVAL", NAIVE, "1", lock, "me", ttl]);
    let huge = i64::MAX.to_string();
    let answer = ask("huge", &huge);
    assert!(answer.is_err() && exists(&server, "huge"), "{answer:?}");
    let left: i64 = server.query(&["PTTL", "huge"]);
    assert_eq!((left, ask("huge", "1000")), (-1, Ok("taken".into())));
    let both = [ask("zero", "0"), ask("zero", "0")];
    assert_eq!(both, [Ok("yours".into()), Ok("yours".into())]);
    "2^63-1: taken for ever by nobody; 0: granted to two".into()
}
