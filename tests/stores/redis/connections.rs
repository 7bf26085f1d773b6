//! Which connection carries what, seen by the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use leasehold_core::StoreErrorKind;
use leasehold_testkit::{
    FaultProxy, Gate, Patience, RedisServer,
    contract::{alice, ttl},
    proxy::{Action, Rule},
};

use super::support::{PATIENCE, calls, config, connect_with, granted};

/// Everything that the server is told, as `MONITOR` shows it.
struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn of(server: &RedisServer) -> Self {
        let mut stream = UnixStream::connect(server.socket()).expect("the socket takes it");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
        stream.write_all(b"MONITOR\r\n").expect("the server listens");
        let mut monitor = Self(BufReader::new(stream));
        assert_eq!(monitor.line(), "+OK");
        monitor
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server shows what it is told");
        line.trim_end().into()
    }

    /// The lines up to the one that holds a word.
    fn until(&mut self, word: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            if line.contains(word) {
                return lines;
            }
            lines.push(line);
        }
    }
}

/// The client of a line such as `+1.2 [0 127.0.0.1:54321] "EVALSHA" …`, and the lock of its key.
fn client_and_lock(line: &str) -> Option<(String, String)> {
    let client = line.split(['[', ']']).nth(1)?.split(' ').nth(1)?;
    let lock = line.split_once(":{")?.1.split_once('}')?.0;
    (client != "lua").then(|| (client.into(), lock.into()))
}

/// So many that chance leaves no connection without a name.
const NAMES: u64 = 64;

#[tokio::test]
async fn the_commands_of_a_name_stay_on_one_connection() {
    let server = RedisServer::builder().tcp().start();
    let config = config(&server.url()).connections(4);
    let store = connect_with(&config).await.expect("the server answers");
    let mut monitor = Monitor::of(&server);
    let calls = calls(&store);
    for round in 0..3 {
        for number in 0..NAMES {
            let calls = calls.about(&format!("name/{number}"));
            let id = alice(100 * round + number);
            let fence = granted(&calls, id).await;
            calls.hold(id, fence, (2, 1), ttl(60)).await.expect("hold");
            calls.release(id, fence, None).await.expect("release");
            calls.withdraw(id).await.expect("withdraw");
        }
    }
    server.command(&["ECHO", "commands are done"]);
    let mut by_name: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (client, lock) in
        monitor.until("commands are done").iter().filter_map(|l| client_and_lock(l))
    {
        by_name.entry(lock).or_default().insert(client);
    }
    assert_eq!(by_name.len() as u64, NAMES);
    assert!(by_name.values().all(|clients| clients.len() == 1), "{by_name:?}");
    let commanding: BTreeSet<_> = by_name.into_values().flatten().collect();
    assert_eq!(commanding.len(), 4, "the names are spread over all connections");

    // Renewals of them all come on one connection more, looks on that of their name.
    for number in 0..NAMES {
        let calls = calls.about(&format!("name/{number}"));
        let fence = leasehold_core::Fence::try_from(1_u64).expect("a token");
        calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await.expect("renew");
    }
    server.command(&["ECHO", "renewals are done"]);
    let lines = monitor.until("renewals are done");
    let renewing: BTreeSet<_> =
        lines.iter().filter_map(|line| client_and_lock(line)).map(|(client, _)| client).collect();
    assert_eq!(renewing.len(), 1);
    assert!(renewing.is_disjoint(&commanding));
    calls.about("name/0").inspect().await.expect("inspect");
    server.command(&["ECHO", "inspections are done"]);
    let lines = monitor.until("inspections are done");
    let inspecting: BTreeSet<_> =
        lines.iter().filter_map(|line| client_and_lock(line)).map(|(client, _)| client).collect();
    assert!(inspecting.len() == 1 && inspecting.is_subset(&commanding), "{inspecting:?}");
}

#[tokio::test]
async fn a_refused_client_name_does_not_matter() {
    let server = RedisServer::start();
    let rights = ["~leasehold:*", "&leasehold:*", "+@all", "-client"];
    server.command(&[&["ACL", "SETUSER", "app", "on", ">sesame"][..], &rights].concat());
    let config = config(&server.url_with("app", "sesame", 0));
    let store = connect_with(&config).await.expect("a name is not needed");
    let calls = calls(&store);
    granted(&calls, alice(1)).await;
    calls.inspect().await.expect("inspect");
}

/// Inspections of a short-lived tokio runtime do not take the pool's connections along.
#[test]
fn pooled_connections_live_where_the_store_does() {
    let server = RedisServer::start();
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a tokio runtime")
    };
    let home = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let home = home.expect("a tokio runtime");
    let store = home.block_on(connect_with(&config(&server.url()).pool_size(1)));
    let store = store.expect("the server answers");
    let gates = home.block_on(async {
        leasehold_redis::RedisPool::new(&config(&server.url()).pool_size(1)).expect("a pool")
    });
    let script = leasehold_redis::Script::new("return 1");
    let received = || server.told("stats", "total_connections_received");
    let mut before = 0;
    for round in 0..4 {
        runtime().block_on(async {
            calls(&store).inspect().await.expect("inspect");
            gates.call(&script, [], []).await.expect("a call");
        });
        // The first made a connection of each pool; that of the question is one a round.
        let now = received();
        assert!(round == 0 || now == before + 1, "{before} and {now}");
        before = now;
    }
}

#[test]
fn a_pool_whose_tokio_runtime_has_ended_fails_and_does_not_panic() {
    let server = RedisServer::start();
    let runtime = || tokio::runtime::Runtime::new().expect("a tokio runtime");
    let script = leasehold_redis::Script::new("return 1");
    let pool = runtime().block_on(async {
        let pool = leasehold_redis::RedisPool::new(&config(&server.url())).expect("a pool");
        pool.call(&script, [], []).await.expect("a call");
        pool
    });
    let error = runtime().block_on(pool.call(&script, [], [])).expect_err("nobody is there");
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[test]
fn a_call_that_was_sent_before_its_tokio_runtime_ended_may_have_run() {
    let server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::before(&server);
    let gate = Gate::new();
    proxy.inject(Rule::new(Action::Hold(gate.clone())).containing("EVAL").always());
    let runtime = || tokio::runtime::Runtime::new().expect("a tokio runtime");
    let home = runtime();
    let pool = home.block_on(async {
        let config = config(&proxy.url()).command_timeout(PATIENCE);
        leasehold_redis::RedisPool::new(&config).expect("a pool")
    });
    let ended = runtime().block_on(async {
        let script = leasehold_redis::Script::new("return 1");
        let call = tokio::spawn(async move { pool.call(&script, [], []).await });
        let is_sent = async || (gate.arrived() >= 1).then_some(());
        Patience::of(PATIENCE).until_async(is_sent).await.expect("it is sent");
        home.shutdown_background();
        call.await.expect("no panic")
    });
    let error = ended.expect_err("nobody reads the answer");
    assert_eq!(error.kind(), StoreErrorKind::Indeterminate, "{error}");
}

/// Calls of a gate may take longer than commands of a lock.
#[tokio::test]
async fn a_pool_may_wait_longer_than_its_configuration_says() {
    let server = RedisServer::start();
    let short = config(&server.url()).command_timeout(Duration::from_millis(50));
    let pool = leasehold_redis::RedisPool::new(&short).expect("a pool");
    let script = leasehold_redis::Script::new("return 1");
    pool.call(&script, [], []).await.expect("a call");
    let patient = pool.clone().command_timeout(PATIENCE).expect("a good setting");
    server.command(&["CLIENT", "PAUSE", "400"]);
    pool.call(&script, [], []).await.expect_err("the server does not answer in time");
    patient.call(&script, [], []).await.expect("it waits");
}
