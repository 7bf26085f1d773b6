//! The rights that `docs/operations.md` asks for are enough on a real server, and none is idle.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use leasehold::{
    ForceReleased, ListedLock, LockRuntime,
    error::{ListError, StoreErrorKind},
    fencing::{FenceGate, RedisGate},
    redis::{RedisConfig, RedisPool, Replication},
    store::Inspection,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{
    QuorumGroup, RedisServer,
    cluster::{RedisCluster, slot_of},
};
use redis::{Client, Value, cmd};
use tokio::task::block_in_place;

/// The words of every `ACL SETUSER locks` of the page, which may go over several lines.
pub(crate) fn documented() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    page.split("```text\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .filter(|block| block.starts_with("ACL SETUSER locks "))
        .map(|block| block.split_whitespace().map(str::to_owned).collect())
        .collect()
}

pub(crate) fn set_user(server: &RedisServer, rights: &[String]) {
    let words: Vec<&str> = rights.iter().map(String::as_str).collect();
    server.command(&words);
}

/// How many processes stand in the queue.
async fn waiting(runtime: &LockRuntime) -> usize {
    match runtime.inspect("orders/42").await.unwrap() {
        Inspection::Held(lease) => lease.waiters.len(),
        Inspection::Free { .. } => 0,
    }
}

/// All items of a list.
async fn listed(runtime: &LockRuntime) -> Vec<Result<ListedLock, ListError>> {
    let (mut list, mut items) = (runtime.list("*").unwrap(), Vec::new());
    while let Some(item) = list.next().await {
        items.push(item);
    }
    items
}

fn assert_names_scan(error: &ListError) {
    assert_eq!(error.store_error().kind(), StoreErrorKind::Config, "{error}");
    assert!(error.to_string().to_lowercase().contains("'scan'"), "{error}");
}

#[tokio::test]
async fn the_documented_rights_suffice() {
    // What a new user may hear, by the server's configuration: 6.2 and 7.0 differ in the default.
    for channels in ["resetchannels", "allchannels"] {
        let server = RedisServer::builder().arg("acl-pubsub-default", channels).start();
        suffice_on(&server).await;
        let client = Client::open(server.url_with("locks", "PASSWORD", 0)).unwrap();
        let mut connection = client.get_connection().unwrap();
        let heard = cmd("SUBSCRIBE").arg("others:news").query::<Value>(&mut connection);
        assert_eq!(heard.unwrap_err().code(), Some("NOPERM"), "{channels}");
    }
}

async fn suffice_on(server: &RedisServer) {
    let [locks, _, _, _, waits, lists, gates] = &documented()[..] else { panic!("seven rules") };
    set_user(server, &["ACL", "SETUSER", "locks", "reset", "on"].map(str::to_owned));
    set_user(server, locks);
    let url = server.url_with("locks", "PASSWORD", 1);

    let runtime = LockRuntime::builder()
        .ttl(Duration::from_millis(300))
        .connect(&url)
        .await
        .expect("the documented rights suffice to connect");
    let lock = runtime.lock("orders/42").unwrap();
    let guard = lock.acquire().await.unwrap();
    let inner = guard.reenter().await.unwrap();
    SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(600)).await;
    assert!(guard.is_held(), "it is renewed");
    assert!(lock.try_acquire().await.unwrap().is_none());
    inner.release().await.unwrap();
    runtime.inspect("orders/42").await.unwrap();
    let ended = runtime.force_release("orders/42").await.unwrap();
    assert!(matches!(ended, ForceReleased::Ended { fence: Some(_), .. }));
    guard.release().await.unwrap_err();
    lock.acquire().await.unwrap().release().await.unwrap();

    let guard = lock.acquire().await.unwrap();
    let other = LockRuntime::connect(&url).await.unwrap();
    let contended = other.lock("orders/42").unwrap();
    let waiter = tokio::spawn(async move { contended.acquire().await });
    while waiting(&runtime).await == 0 {
        SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(5)).await;
    }
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    assert!(other.shutdown(Duration::from_secs(5)).await.unreleased.is_empty());

    let refused = listed(&runtime).await.remove(0).unwrap_err();
    assert!(matches!(refused, ListError::Ended(_)), "{refused}");
    assert_names_scan(&refused);
    set_user(server, lists);
    let guard = lock.acquire().await.unwrap();
    let found = listed(&runtime).await;
    assert!(matches!(&found[..], [Ok(lock)] if lock.name == *guard.name()), "{found:?}");
    assert!(runtime.wait_graph().await.unread.is_empty());
    guard.release().await.unwrap();

    let one = Replication::wait(1, Duration::from_millis(100)).unwrap();
    let asking = LockRuntime::builder().replication(one);
    asking.clone().connect(&url).await.expect_err("no right to wait");
    set_user(server, waits);
    asking.connect(&url).await.expect("the documented right suffices to wait");

    let gate = RedisGate::new(RedisPool::new(&RedisConfig::new(&url).unwrap()).unwrap());
    let guard = lock.acquire().await.unwrap();
    gate.set("orders:{42}", "paid", guard.stamp()).await.expect_err("rights of locks alone");
    set_user(server, gates);
    for value in ["orders:{42}", "orders:42"] {
        gate.set(value, "paid", guard.stamp()).await.unwrap();
        gate.admit(value, guard.stamp()).await.unwrap();
    }
    guard.release().await.unwrap();
    assert!(runtime.shutdown(Duration::from_secs(5)).await.unreleased.is_empty());
}

/// What the page says of others on a shared server: they neither see nor change what is Leasehold's.
#[test]
fn the_documented_rights_keep_others_out() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```text\n").find(|block| block.starts_with("ACL SETUSER others "));
    let block = block.and_then(|block| block.split("```").next()).expect("rights of others");
    for channels in ["resetchannels", "allchannels"] {
        let server = RedisServer::builder().arg("acl-pubsub-default", channels).start();
        for line in block.lines() {
            server.command(&line.split_whitespace().collect::<Vec<_>>());
        }
        let client = Client::open(server.url_with("others", "PASSWORD", 0)).unwrap();
        let mut others = client.get_connection().unwrap();
        let mut run = |line: &str| {
            let mut words = line.split_whitespace();
            let mut command = cmd(words.next().unwrap());
            for word in words {
                command.arg(word);
            }
            command.query::<Value>(&mut others)
        };
        for allowed in ["SET others:a 1", "GET others:a", "PUBLISH others:news x"] {
            run(allowed).unwrap();
        }
        for denied in [
            "GET leasehold:{a}:lease",
            "SET leasehold:{a}:lease x",
            "DEL leasehold:{a}:queue",
            "HGETALL leasehold:{a}:waiters",
            "PUBLISH leasehold:runtime:x granted",
            "SUBSCRIBE leasehold:runtime:x",
            "PSUBSCRIBE *",
            "FLUSHALL",
            "MONITOR",
            "SLOWLOG GET",
            "CONFIG GET maxmemory",
        ] {
            let refused = run(denied).expect_err(denied);
            assert_eq!(refused.code(), Some("NOPERM"), "{denied}: {refused}");
        }
        for script in ["GET", "DEL"] {
            let mut call = cmd("EVAL");
            call.arg(format!("return redis.call('{script}', KEYS[1])")).arg(1);
            call.arg("leasehold:{a}:lease").query::<Value>(&mut others).expect_err("no such key");
        }
        let unnamed = Client::open(server.url())
            .and_then(|client| cmd("PING").query::<Value>(&mut client.get_connection()?));
        unnamed.expect_err("the default user is off");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_suffice_on_a_cluster() {
    let cluster = RedisCluster::start();
    let [locks, nodes, _, _, _, lists, gates] = &documented()[..] else { panic!("seven rules") };
    for server in cluster.servers() {
        set_user(server, &["ACL", "SETUSER", "locks", "reset", "on"].map(str::to_owned));
        for rights in [locks, nodes, gates] {
            set_user(server, rights);
        }
    }
    let url = cluster.url().replace("://", "://locks:PASSWORD@");
    for server in cluster.servers() {
        server.command(&["ACL", "SETUSER", "locks", "-asking"]);
    }
    let refused = LockRuntime::connect(&url).await.expect_err("it is needed while slots move");
    assert!(refused.to_string().contains("'asking'"), "{refused}");
    cluster.servers().iter().for_each(|server| set_user(server, nodes));
    let ttl = Duration::from_millis(600);
    let locks = LockRuntime::builder().ttl(ttl).connect(&url).await.expect("the rights suffice");
    let guard = locks.lock("orders/42").unwrap().acquire().await.unwrap();
    let key = "leasehold:{orders/42}:lease";
    let (slot, here) = (slot_of(key), RedisCluster::owner_of(key));
    let there = (here + 1) % cluster.servers().len();
    // Its keys are there already, and its slot is not.
    block_in_place(|| cluster.begin_migration(slot, there));
    block_in_place(|| cluster.move_keys(slot));
    SystemClock.sleep_until(SystemClock.now() + 2 * ttl).await;
    assert!(guard.is_held(), "it is renewed on the way");
    block_in_place(|| cluster.end_migration(slot));
    guard.release().await.unwrap();

    // One master refuses, and the list goes on with the others.
    for server in &cluster.servers()[1..] {
        set_user(server, lists);
    }
    let all = locks.all((0..20).map(|n| format!("orders/{n}"))).unwrap().acquire().await.unwrap();
    let (found, refused): (Vec<_>, Vec<_>) =
        listed(&locks).await.into_iter().partition(Result::is_ok);
    let [Err(refused)] = &refused[..] else { panic!("{refused:?}") };
    assert!(matches!(refused, ListError::Part(_)) && (1..20).contains(&found.len()), "{refused}");
    assert_names_scan(refused);
    set_user(&cluster.servers()[0], lists);
    let found = listed(&locks).await;
    assert!(found.len() == 20 && found.iter().all(Result::is_ok), "{found:?}");
    all.release().await.unwrap();

    let gate = RedisGate::new(RedisPool::new(&RedisConfig::new(&url).unwrap()).unwrap());
    let guard = locks.lock("orders/42").unwrap().acquire().await.unwrap();
    for value in ["orders:{42}", "orders:42"] {
        gate.set(value, "paid", guard.stamp()).await.unwrap();
        gate.admit(value, guard.stamp()).await.unwrap();
    }
    guard.release().await.unwrap();
    assert!(locks.shutdown(Duration::from_secs(5)).await.unreleased.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_suffice_on_a_quorum() {
    let group = QuorumGroup::start(3);
    block_in_place(|| group.let_vote());
    let [locks, _, _, quorum, ..] = &documented()[..] else { panic!("seven rules") };
    for server in group.servers() {
        set_user(server, &["ACL", "SETUSER", "locks", "reset", "on"].map(str::to_owned));
        for rights in [locks, quorum] {
            set_user(server, rights);
        }
    }
    let url = group.url_with("locks:PASSWORD@");
    let ttl = Duration::from_secs(2);
    let builder = LockRuntime::builder().ttl(ttl);
    let locks = builder.connect(&url).await.expect("the rights suffice");
    let lock = locks.lock("orders/42").unwrap();
    let guard = lock.acquire().await.unwrap();
    let inner = guard.reenter().await.unwrap();
    SystemClock.sleep_until(SystemClock.now() + 2 * ttl).await;
    assert!(guard.is_held(), "it is renewed");
    inner.release().await.unwrap();
    let other = LockRuntime::connect(&url).await.unwrap();
    let contended = other.lock("orders/42").unwrap();
    let waiter = tokio::spawn(async move { contended.acquire().await });
    while waiting(&locks).await == 0 {
        SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(5)).await;
    }
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    let guard = lock.acquire().await.unwrap();
    let ended = locks.force_release("orders/42").await.unwrap();
    assert!(matches!(ended, ForceReleased::Ended { fence: Some(_), .. }));
    guard.release().await.unwrap_err();
    assert!(locks.shutdown(Duration::from_secs(5)).await.unreleased.is_empty());
}

#[test]
fn the_documented_rights_are_those_of_the_scripts() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let files = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // What the client sends by itself.
    let by_itself = ["eval", "evalsha", "ping", "unwatch", "select", "subscribe", "client|setname"];
    let (mut used, mut on_a_quorum) =
        (BTreeSet::from(by_itself.map(str::to_owned)), BTreeSet::new());
    let quorum = crates.join("quorum/src/lua");
    for folder in files(&crates.join("redis/src/lua")).chain([quorum.clone()]) {
        let used = if folder == quorum { &mut on_a_quorum } else { &mut used };
        for script in files(&folder) {
            let text = fs::read_to_string(script).unwrap();
            // `redis.call`, `redis.pcall`, and locals that are one of them.
            let commands = text.split("call('").skip(1).filter_map(|rest| rest.split('\'').next());
            used.extend(commands.map(str::to_lowercase));
        }
    }
    let granted = |rule: usize| -> BTreeSet<String> {
        let rights = documented().remove(rule);
        rights.iter().filter_map(|word| word.strip_prefix('+')).map(str::to_owned).collect()
    };
    // A Cluster does without these, which Redis 6.2 does not know.
    let sharded = granted(2);
    assert_eq!(sharded, BTreeSet::from(["spublish", "ssubscribe"].map(str::to_owned)));
    used.retain(|right| !sharded.contains(right));
    assert_eq!(used, granted(0));
    // To tell a restart, and whether it lost anything.
    on_a_quorum.extend(["info", "config|get"].map(str::to_owned));
    let more: BTreeSet<String> = on_a_quorum.difference(&used).cloned().collect();
    assert_eq!(more, granted(3));
}
