//! Quorums that are set up wrong: what can never work is an error before any work, and one node that is wrong
//! keeps nobody from the others.

use std::{convert::Infallible, time::Duration};

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    diagnosis::{Severity, Topic},
    error::{AcquireError, ConnectError, StoreErrorKind, WithError},
    once::OnceOutcome,
    redis::{Credentials, QuorumSettings},
};
use leasehold_testkit::{FaultProxy, Log, QuorumGroup, RedisServer};
use tokio::task::block_in_place;

use crate::{
    connect::{names, refusal, use_lock},
    faults::quorum::scene,
    support::{patient, wait},
};

const HOURS: Duration = Duration::from_secs(2 * 60 * 60);
const MINUTE: Duration = Duration::from_secs(60);

async fn once(locks: &LockRuntime, window: Duration) -> Result<OnceOutcome<()>, AcquireError> {
    let job = locks.once("job").expect("a name").window(window);
    let ended = wait::soon("it ends", job.run(async |_lease| Ok::<_, Infallible>(()))).await;
    ended.map_err(|error| match error {
        WithError::Acquire(error) => error,
        other => panic!("the work ran: {other}"),
    })
}

/// It is about an option, and says what to change.
fn is_of_options<T>(outcome: Result<T, AcquireError>) {
    let error = outcome.map(drop).expect_err("no node may keep it for so long");
    assert!(matches!(error, AcquireError::Options { .. }), "{error}");
    names(&error.to_string(), &["60s", "longest_ttl"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_node_would_keep_is_refused_before_the_work() {
    let group = block_in_place(|| scene::group(3));
    let locks = patient::builder().connect(group.url()).await.expect("the servers answer");
    let lock = locks.lock("a").expect("a name");
    let both = locks.all(["a", "b"]).expect("names");
    is_of_options(once(&locks, HOURS).await);
    is_of_options(lock.acquire().min_hold(HOURS).await);
    is_of_options(lock.acquire().ttl(HOURS).await);
    is_of_options(lock.acquire().ttl(HOURS).try_acquire().await);
    is_of_options(both.acquire().min_hold(HOURS).await);
    let connected = patient::builder().ttl(HOURS).connect(group.url()).await;
    assert!(matches!(connected, Err(ConnectError::Options(_))), "{connected:?}");
    let lazy = patient::builder().ttl(HOURS).connect_lazy(group.url());
    assert!(matches!(lazy, Err(ConnectError::Options(_))), "{lazy:?}");
    // At the limit, and with a longer one, it is kept.
    let guard = wait::soon("a lease", lock.acquire().ttl(MINUTE).min_hold(MINUTE)).await;
    guard.expect("the longest of all").release().await.expect("held to the end");
    let settings = QuorumSettings::default().longest_ttl(HOURS).expect("in range");
    let builder = patient::builder().ttl(HOURS).quorum(settings);
    let locks = builder.connect(group.url()).await.expect("the servers answer");
    assert_eq!(once(&locks, HOURS).await.expect("an outcome"), OnceOutcome::Ran(()));
    let again = once(&locks, HOURS).await.expect("an outcome");
    assert!(matches!(again, OnceOutcome::Duplicate(_)), "{again:?}");
}

/// The address of a quorum on these ports.
fn at(ports: [u16; 3]) -> String {
    let [a, b, c] = ports.map(|port| format!("127.0.0.1:{port}"));
    format!("redis+quorum://{a},{b},{c}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_under_two_names_is_refused() {
    let group = block_in_place(|| scene::group(3));
    let proxy = FaultProxy::before(group.server(0));
    let [first, other] = [0, 1].map(|number| group.server(number).port().expect("a port"));
    let url = at([first, proxy.port(), other]);
    let patient_with_nodes = QuorumSettings::default().node_timeout(MINUTE).expect("in range");
    let builder = patient::builder().quorum(patient_with_nodes);
    let (kind, text) = refusal(builder, &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    let both = [first, proxy.port()].map(|port| format!("127.0.0.1:{port}"));
    names(&text, &["same server", &both[0], &both[1]]);

    // A lazy runtime takes both addresses for one node: with the other server that is a majority, without it none.
    let locks = patient::builder().connect_lazy(&*url).expect("good settings");
    use_lock(&locks).await;
    let diagnosis = locks.diagnose().await;
    let found = diagnosis.findings().iter().find(|finding| finding.what.contains("same server"));
    let found = found.unwrap_or_else(|| panic!("{diagnosis}"));
    assert_eq!((found.severity, found.topic), (Severity::Danger, Topic::Quorum), "{found}");
    assert_eq!(found.servers, both);
    block_in_place(|| group.kill(1));
    let lock = locks.lock("b").expect("a name");
    let ended = wait::soon("an answer", lock.acquire().wait(Duration::from_millis(500))).await;
    assert!(ended.is_err(), "one server of two is no majority of three: {ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_quorum_has_no_server_twice() {
    let server = RedisServer::builder().tcp().start();
    let proxies = [FaultProxy::before(&server), FaultProxy::before(&server)];
    let ports = [server.port().expect("a port"), proxies[0].port(), proxies[1].port()];
    let begun = LockRuntime::builder().init_quorum(at(ports)).await;
    let error = begun.expect_err("it is one server").to_string();
    names(&error, &["same server", "nothing was changed"]);
    assert!(server.query::<Vec<String>>(&["KEYS", "*"]).is_empty());
}

/// Lets `app` in with a password.
fn lets_in(server: &RedisServer, password: &str) {
    let password = format!(">{password}");
    server.command(&["ACL", "SETUSER", "app", "reset", "on", &password, "~*", "&*", "+@all"]);
}

/// Lets `app` in with a password, and nobody without one.
fn asks_for(server: &RedisServer, password: &str) {
    lets_in(server, password);
    server.command(&["ACL", "SETUSER", "default", "off"]);
}

/// With the password in the address, by a provider, and without one.
fn logins(group: &QuorumGroup) -> [(LockRuntimeBuilder, String); 3] {
    let provided = || async { Ok(Credentials::new("app", "right")) };
    [
        (patient::builder(), group.url_with("app:right@")),
        (patient::builder().credentials(provided), group.url()),
        (patient::builder(), group.url()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_a_majority_refuses_is_told_as_one() {
    let group = block_in_place(|| scene::group(3));
    (0..2).for_each(|number| asks_for(group.server(number), "other"));
    lets_in(group.server(2), "right");
    let [in_address, provided, none] = logins(&group);
    for (builder, url) in [in_address, none] {
        let (kind, text) = refusal(builder, &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &["127.0.0.1:", "2 of 3 nodes"]);
    }
    let (builder, url) = provided;
    let error = builder.clone().connect(&*url).await.expect_err("it is refused");
    let ConnectError::Store(error) = error else { panic!("{error}") };
    assert!(error.is_refused_login(), "{error}");
    names(&error.to_string(), &["127.0.0.1:", "2 of 3 nodes"]);
    // The same where the runtime is there already.
    let locks = builder.connect_lazy(&*url).expect("good settings");
    let error = locks.inspect("a").await.expect_err("it is refused").to_string();
    names(&error, &["refused", "127.0.0.1:"]);
    assert!(!error.contains("network"), "{error}");
}

#[tokio::test]
async fn a_node_that_refuses_a_login_keeps_nobody_from_the_others() {
    let group = scene::group(3);
    let url = group.url_with("app:right@");
    (0..2).for_each(|number| asks_for(group.server(number), "right"));
    for password in ["other", "right"] {
        asks_for(group.server(2), password);
        let (log, _guard) = Log::of_this_thread();
        let locks = patient::builder().connect(&*url).await.expect("a majority lets it in");
        use_lock(&locks).await;
        let place = format!("127.0.0.1:{}", group.server(2).port().expect("a port"));
        let told = log.with("WARN").iter().any(|line| line.contains(&place));
        assert_eq!(told, password == "other", "{:?}", log.lines());
        let diagnosis = locks.diagnose().await;
        let found = diagnosis.findings().iter().find(|finding| finding.topic == Topic::Reach);
        assert_eq!(found.is_some(), password == "other", "{diagnosis}");
        assert!(found.is_none_or(|found| found.servers == [place]), "{diagnosis}");
    }
}

/// One node asks for a password, and the address has none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_asks_for_a_login_keeps_nobody_from_the_others() {
    let group = block_in_place(|| scene::group(3));
    asks_for(group.server(1), "right");
    let locks = patient::builder().connect(group.url()).await.expect("a majority lets it in");
    use_lock(&locks).await;
    block_in_place(|| group.kill(2));
    // Either of the two would do.
    let (_, text) = refusal(patient::builder(), &group.url()).await;
    names(&text, &["2 of 3 nodes", "NOAUTH", "refused"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_is_wrong_with_the_nodes_is_told() {
    let group = block_in_place(|| scene::group(3));
    let locks = patient::builder().connect(group.url()).await.expect("the servers answer");
    block_in_place(|| {
        (1..3).for_each(|number| group.kill(number));
        group.server(0).flush_all();
    });
    // The new mark is written by the first connection that misses it.
    let told = wait::soon("the node tells when it counts", async {
        loop {
            let text = locks.inspect("a").await.expect_err("nobody knows").to_string();
            if text.contains("counts again in") {
                return text;
            }
            wait::a_moment().await;
        }
    });
    let text = told.await;
    names(&text, &["3 of 3 nodes", "no majority", "is new or has lost its data"]);
    for server in group.servers() {
        names(&text, &[&server.port().expect("a port").to_string()]);
    }
    assert!(text.ends_with("; check that the server runs and the address is right"), "{text}");
}

/// Who comes with the address of one of the nodes does not take the keys for those of another program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_node_is_told_that_it_is_one_of_a_quorum() {
    let group = block_in_place(|| scene::group(3));
    let locks = patient::builder().connect(group.url()).await.expect("the servers answer");
    let held = locks.lock("value").expect("a name");
    let _held = wait::soon("a lease", held.acquire()).await.expect("a lease");
    let other = patient::builder().connect(group.url()).await.expect("the servers answer");
    let lock = other.lock("value").expect("a name");
    let waiting = tokio::spawn(async move { lock.acquire().wait_forever().await.map(drop) });
    let waits = |server: &RedisServer| {
        let text = block_in_place(|| scene::text(server, "value")).unwrap_or_default();
        text.starts_with("v5w").then(|| server.url())
    };
    wait::until("somebody waits", || group.servers().any(|one| waits(one).is_some())).await;
    let url = group.servers().find_map(waits).expect("one of them");

    let alone = patient::builder().connect(url).await.expect("it is a master");
    let error = alone.inspect("value").await.expect_err("it is of a quorum").to_string();
    names(&error, &["quorum", "redis+quorum://"]);
    assert!(!error.contains("another program"), "{error}");
    let error = alone.lock("value").expect("a name").try_acquire().await.expect_err("of a quorum");
    names(&error.to_string(), &["quorum", "redis+quorum://"]);
    let diagnosis = alone.diagnose().await;
    let found = diagnosis.findings().iter().find(|finding| finding.topic == Topic::Quorum);
    let found = found.unwrap_or_else(|| panic!("{diagnosis}"));
    names(&found.to_string(), &["node of a quorum", "redis+quorum://"]);
    assert!(found.severity >= Severity::Warning, "{found}");
    waiting.abort();
}
