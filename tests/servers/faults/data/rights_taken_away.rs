use std::collections::BTreeMap;

use leasehold::{
    LeaseEnd, LockRuntime, LossReason,
    error::{ReenterError, ReleaseError, StoreErrorKind::Config},
};
use leasehold_testkit::RedisServer;

use super::scene::{LONG, assert_says, connect, key, refusal, use_lock};
use crate::support::{lease, matrix::row, raw, wait};

row! {
    rights_taken_away: protected, control;
    fault: "during work the user loses the right to a command, or to its keys",
    right: "errors name the missing rights; leases end as they should; each key has a time to live",
    control: "a script whose second write is denied",
}

const ALL: [&str; 3] = ["~leasehold:*", "&leasehold:*", "+@all"];
/// What is taken away, and what the server then logs as refused.
const TAKEN: [(&[&str], &str); 6] = [
    (&["-evalsha", "-eval"], "evalsha"),
    (&["resetkeys"], "leasehold:{b/1}:"),
    (EXISTS, "exists"),
    (&["-set"], "set"),
    (&["-getrange", "-getex"], "getrange"),
    (&["-@write"], "set"),
];
/// The right that only the first grant of a lock needs.
const EXISTS: &[&str] = &["-exists"];

/// A server with a user whose rights come and go.
struct Scene {
    server: RedisServer,
    locks: LockRuntime,
}

impl Scene {
    async fn start() -> Self {
        let server = RedisServer::start();
        server.command(&["ACL", "SETUSER", "app", "reset", "on", ">s3cret"]);
        rights(&server, &ALL);
        let locks = connect(&server.url_with("app", "s3cret", 0)).await;
        Self { server, locks }
    }

    fn no_key_for_ever(&self) {
        assert_eq!(self.server.keys_without_ttl(), [""; 0]);
    }
}

fn rights(server: &RedisServer, rights: &[&str]) {
    server.command(&[&["ACL", "SETUSER", "app"], rights].concat());
}

fn protected() -> String {
    wait::on_one_thread(async {
        let scene = Scene::start().await;
        let refused = held_through_it(&scene).await;
        let fences =
            [released(&scene, "b", "resetkeys").await, released(&scene, "c", "-set").await];
        lost_meanwhile(&scene).await;
        for (name, fence) in ["b", "c"].into_iter().zip(fences) {
            assert!(use_lock(&scene.locks, name).await > fence, "{name} after its ttl");
        }
        scene.no_key_for_ever();
        format!("{refused} refusals; 1 lease held on, 1 lost, 2 expired; free again")
    })
}

/// A long lease stands whatever right is away for a while, and ends when it is back.
async fn held_through_it(Scene { server, locks }: &Scene) -> u32 {
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    let mut refused = 0;
    for (number, (taken, refusal_of)) in TAKEN.into_iter().enumerate() {
        // Nobody has had these locks before.
        let names = [format!("b/{number}"), format!("c/{number}")];
        let [b, c] = names.each_ref().map(|name| locks.lock(name).expect("a name"));
        let grant = match taken {
            ["resetkeys"] => "grant the Redis user the keys `~leasehold:*`, as",
            _ => "grant the Redis user what docs/operations.md lists; ACL LOG says",
        };
        server.command(&["ACL", "LOG", "RESET"]);
        rights(server, taken);
        let errors =
            [refusal(b.try_acquire().await), refusal(wait::soon("an error", c.acquire()).await)];
        for (error, name) in errors.iter().zip(&names) {
            assert_says(error, Config, &[&format!("lock {name:?}"), grant]);
        }
        let log = server.query::<Vec<BTreeMap<String, String>>>(&["ACL", "LOG"]);
        assert!(log.iter().any(|entry| entry["object"].starts_with(refusal_of)), "{log:?}");
        refused += 2;
        if taken != EXISTS {
            let Err(ReenterError::Store(error)) = guard.reenter().await else {
                panic!("{taken:?}")
            };
            assert_says(&error, Config, &["lock \"a\"", grant]);
            refused += 1;
        }
        assert_eq!(server.keys_without_ttl(), [""; 0], "{taken:?}");
        rights(server, &ALL);
        guard.reenter().await.expect("held").release().await.expect("held");
        for name in &names {
            use_lock(locks, name).await;
        }
    }
    guard.release().await.expect("held to the end");
    use_lock(locks, "a").await;
    refused
}

/// A short lease whose renewals are denied is told as lost, and free when the right is back.
async fn lost_meanwhile(Scene { server, locks }: &Scene) {
    let guard = locks.lock("a").expect("a name").acquire().ttl(LONG / 60).await.expect("a lease");
    rights(server, &["-set"]);
    let end = wait::soon("the loss is told", guard.lost()).await;
    assert_eq!(end, LeaseEnd::Lost(LossReason::Expired));
    let fence = guard.fence().get();
    rights(server, &ALL);
    drop(guard);
    assert!(use_lock(locks, "a").await > fence);
}

/// A release that is denied says so; the lease ends with its ttl. Returns its fence.
async fn released(Scene { server, locks }: &Scene, name: &str, taken: &str) -> u64 {
    let guard = locks.lock(name).expect("a name").acquire().ttl(LONG / 20).await;
    let guard = guard.expect("a lease");
    let fence = guard.fence().get();
    rights(server, &[taken]);
    let outcome = guard.release().await;
    rights(server, &ALL);
    let Err(unconfirmed) = outcome else { panic!("{outcome:?}") };
    let text = unconfirmed.to_string();
    assert!(text.contains(&format!("lock {name:?}")), "{text}");
    let ReleaseError::Unconfirmed { error, .. } = unconfirmed else { panic!("{text}") };
    assert_says(&error, Config, &["grant the Redis user"]);
    assert!(lease::is_held(server, &key(name, "lease")), "{taken}");
    fence
}

const NAIVE: &str = "\
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

fn control() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        server.command(&["ACL", "SETUSER", "app", "reset", "on", ">s3cret"]);
        rights(&server, &ALL);
        let mut raw = raw::connect(&server.url_with("app", "s3cret", 0)).await;
        rights(&server, &["-pexpire"]);
        let script = redis::Script::new(NAIVE);
        let mut call = script.key("leasehold:a");
        let _ = call.arg("me").arg(60_000).invoke_async::<i64>(&mut raw).await;
        let left = server.keys_without_ttl();
        assert!(!left.is_empty(), "the control came to no harm");
        format!("{} lock without a time to live, held by nobody", left.len())
    })
}
