//! Sentinels and Clusters behind logins and certificates, and runtimes that are made before these
//! are there.

use std::time::Duration;

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    error::{ConnectError, StoreErrorKind},
    fencing::RedisGate,
    redis::{Credentials, RedisConfig, RedisPool},
};
use leasehold_testkit::{
    Patience, RedisServer,
    cluster::RedisCluster,
    sentinel::{Sentinel, SentinelGroup},
};

use super::{names, refusal, use_lock};
use crate::support::{patient, wait};

/// Takes a lock in every part of a store, and writes behind a gate.
async fn use_all(locks: &LockRuntime, gate: &RedisGate) {
    for number in 0..12 {
        let lock = locks.lock(format!("orders/{number}")).expect("a name");
        let guard = lock.acquire().await.expect("a lease");
        gate.set(&format!("order:{number}"), "paid", guard.stamp())
            .await
            .expect("the holder writes");
        guard.release().await.expect("held to the end");
    }
    use_lock(locks).await;
}

async fn works_at(url: &str, builder: LockRuntimeBuilder, config: RedisConfig) {
    let gate = RedisGate::new(RedisPool::new(&config).expect("good settings"));
    let locks = builder.clone().connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    use_all(&locks, &gate).await;
    let lazy = builder.connect_lazy(url).expect("good settings");
    use_all(&lazy, &gate).await;
    let diagnosis = locks.diagnose().await;
    assert!(!diagnosis.to_string().contains("s3cret"), "{diagnosis}");
    let reached = diagnosis.servers().iter().all(|server| server.round_trip.is_some());
    assert!(reached && !diagnosis.servers().is_empty(), "{diagnosis}");
}

fn config(url: &str) -> RedisConfig {
    let patience = Duration::from_secs(10);
    let config = RedisConfig::new(url).expect("an address");
    config.command_timeout(patience).connect_timeout(patience)
}

/// Lets a user in, and nobody else but the servers' own.
fn close(server: &RedisServer, password: &str) {
    let password = format!(">{password}");
    let user = ["ACL", "SETUSER", "app", "reset", "on", &password];
    server.command(&[&user[..], &["~*", "&*", "+@all"]].concat());
    server.command(&["ACL", "SETUSER", "default", "off"]);
}

#[tokio::test]
async fn nodes_of_a_cluster_that_are_away_do_no_harm_in_its_address() {
    let cluster = RedisCluster::start();
    // A port where nobody listens stands first, and a host that nobody knows.
    let url = cluster.url_with("127.0.0.1:1,no-such-host.invalid:7000,");
    works_at(&url, patient::builder(), config(&url)).await;
    // The longest patience that can be written.
    let plain = cluster.url();
    let endless = LockRuntime::builder().connect_timeout(Duration::MAX).connect(&*plain);
    drop(wait::soon("a runtime", endless).await.expect("the Cluster is there"));
    let server = RedisServer::builder().tcp().start();
    let (kind, text) =
        refusal(LockRuntime::builder(), &server.url().replace("redis://", "redis+cluster://"))
            .await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["not a node of a Cluster", "write redis://host:port"]);
}

#[tokio::test]
async fn the_nodes_of_a_cluster_may_ask_for_a_login() {
    let cluster = RedisCluster::start();
    cluster.servers().iter().for_each(|server| close(server, "s3cret"));
    let url = cluster.url_with("app:s3cret@");
    works_at(&url, patient::builder(), config(&url)).await;
    for (wrong, kind) in
        [("", StoreErrorKind::Config), ("app:s3cret-of-others@", StoreErrorKind::Config)]
    {
        let (refused, text) = refusal(LockRuntime::builder(), &cluster.url_with(wrong)).await;
        assert_eq!(refused, Some(kind), "{text}");
        names(&text, &["user and password"]);
    }

    // Both commands of a look are refused; the words are those of the server.
    let weak = ["ACL", "SETUSER", "app", "-cluster"];
    for server in cluster.servers() {
        server.command(&weak);
    }
    let (refused, text) = refusal(LockRuntime::builder(), &url).await;
    assert_eq!(refused, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["has no permissions", "grant the Redis user"]);
    assert!(!text.contains("Pipeline"), "{text}");
}

#[tokio::test]
async fn a_provider_gives_the_login_of_a_cluster_and_of_the_master_of_a_group() {
    let provider = || async { Ok(Credentials::new("app", "s3cret")) };
    let cluster = RedisCluster::start();
    cluster.servers().iter().for_each(|server| close(server, "s3cret"));
    let url = cluster.url();
    works_at(&url, patient::builder().credentials(provider), config(&url).credentials(provider))
        .await;

    let group = SentinelGroup::start();
    close(group.master(), "s3cret");
    let url = group.url();
    works_at(&url, patient::builder().credentials(provider), config(&url).credentials(provider))
        .await;
    let (kind, text) = refusal(LockRuntime::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
}

#[tokio::test]
async fn acquires_wait_for_a_cluster_and_a_group_that_are_away() {
    let cluster = RedisCluster::start();
    cluster.servers().iter().for_each(RedisServer::stop_signal);
    let locks = patient::builder().connect_lazy(&*cluster.url()).expect("good settings");
    served_later(&locks, || cluster.servers().iter().for_each(RedisServer::cont_signal)).await;

    let group = SentinelGroup::start();
    group.sentinels().iter().for_each(Sentinel::pause);
    let locks = patient::builder().connect_lazy(&*group.url()).expect("good settings");
    served_later(&locks, || group.sentinels().iter().for_each(Sentinel::resume)).await;
}

async fn served_later(locks: &LockRuntime, come_back: impl FnOnce()) {
    let lock = locks.lock("later").expect("a name");
    let waiting = tokio::spawn(lock.acquire().wait(wait::CEILING));
    wait::a_moment().await;
    assert!(!waiting.is_finished(), "it waits");
    come_back();
    let guard = wait::soon("a lease", waiting).await.expect("a task").expect("a lease");
    guard.release().await.expect("held to the end");
    use_lock(locks).await;
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_cluster_may_speak_tls_and_ask_for_certificates() {
    let cluster = RedisCluster::with_tls();
    let server = &cluster.servers()[0];
    let ca = server.ca_pem().expect("an authority");
    let (certificate, key) = server.certificate();
    let url = cluster.url();
    assert!(url.starts_with("rediss+cluster://"), "{url}");
    let builder = patient::builder().tls_root_ca(ca).tls_client_certificate(&*certificate, &*key);
    let config = config(&url).tls_root_ca(ca).tls_client_certificate(&*certificate, &*key);
    works_at(&url, builder, config).await;

    let (kind, text) = refusal(LockRuntime::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["certificate authority"]);
    let without = LockRuntime::builder().tls_root_ca(ca);
    let (_, text) = refusal(without, &url).await;
    names(&text, &["rediss+cluster://127.0.0.1:"]);
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_servers_may_speak_tls() {
    let group = SentinelGroup::with_tls();
    let ca = group.servers()[0].ca_pem().expect("an authority").to_owned();
    let url = group.url();
    assert!(url.starts_with("rediss+sentinel://"), "{url}");
    let (builder, config) = (patient::builder().tls_root_ca(&*ca), config(&url).tls_root_ca(&*ca));
    works_at(&url, builder.clone(), config.clone()).await;
    let (_, text) = refusal(LockRuntime::builder(), &url).await;
    names(&text, &["certificate", "no Sentinel answers"]);

    // The next master is found, and trusted, as the first one was.
    let locks = builder.connect(&*url).await.expect("a master");
    let gate = RedisGate::new(RedisPool::new(&config).expect("good settings"));
    use_all(&locks, &gate).await;
    tokio::task::block_in_place(|| group.fail_over());
    let again = || async {
        let guard = locks.lock("orders/1").ok()?.acquire().await.ok()?;
        gate.set("order:1", "sent", guard.stamp()).await.ok()?;
        guard.release().await.ok()
    };
    Patience::of(wait::CEILING).until_async(again).await.expect("the new master is used");
}

/// As a missing right is, and as a single server tells it: the login is wrong for good.
#[tokio::test]
async fn a_login_that_one_master_of_a_cluster_refuses_is_told_at_once() {
    let cluster = RedisCluster::start();
    cluster.servers().iter().for_each(|server| close(server, "s3cret"));
    let odd = &cluster.servers()[2];
    close(odd, "another");
    let place = format!("127.0.0.1:{}", odd.port().expect("a port"));
    let provider = || async { Ok(Credentials::new("app", "s3cret")) };
    let builder = || patient::builder().credentials(provider);
    let refused = builder().connect(&*cluster.url()).await.map(drop).expect_err("one refuses");
    let ConnectError::Store(error) = refused else { panic!("{refused}") };
    assert!(error.is_refused_login(), "{error}");
    names(&error.to_string(), &["refused", &place]);
    let (kind, text) = refusal(patient::builder(), &cluster.url_with("app:s3cret@")).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &[&place, "create the user there"]);
    // The control: it is the login.
    close(odd, "s3cret");
    use_lock(&builder().connect(&*cluster.url()).await.expect("all let it in")).await;
}

/// The address of a group whose first Sentinels are replaced.
fn with_others(group: &SentinelGroup, others: &[u16]) -> String {
    let url = group.url();
    let own = group.sentinels().iter().map(Sentinel::port);
    own.zip(others).fold(url, |url, (own, other)| url.replace(&own.to_string(), &other.to_string()))
}

/// Whatever the others say, they are too few.
#[tokio::test]
async fn most_sentinels_that_cannot_serve_are_told_with_their_places() {
    let group = SentinelGroup::start();
    let ports: Vec<_> = group.sentinels().iter().map(Sentinel::port).collect();
    let places: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let server = RedisServer::builder().tcp().start();
    let other = RedisServer::builder().tcp().start();
    let [one, two] = [&server, &other].map(|server| server.port().expect("a port"));
    let (kind, text) = refusal(patient::builder(), &with_others(&group, &[one, two])).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    let at = [one, two].map(|port| format!("127.0.0.1:{port}"));
    names(&text, &["no Sentinel", &at[0], &at[1], "26379"]);
    assert!(!text.contains(&format!("{},", places[2])), "{text}");

    // One of three does no harm.
    use_lock(&patient::builder().connect(with_others(&group, &[one])).await.expect("two")).await;

    let closed = ["ACL", "SETUSER", "default", "resetpass", ">hush-hush"];
    group.sentinels()[0].command(&closed);
    use_lock(&patient::builder().connect(&*group.url()).await.expect("two")).await;
    group.sentinels()[1].command(&closed);
    let (kind, text) = refusal(patient::builder(), &group.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["refuse the login", &places[0], &places[1], "sentinel_pass"]);
}

/// One word of the address is for both, so that neither `redis` nor `rediss` would do.
#[cfg(feature = "tls")]
#[tokio::test]
async fn sentinels_and_a_master_of_which_one_speaks_tls_are_told_as_such() {
    const BOTH: [&str; 3] = ["are both reached by TLS, or neither", "tls-port", "tls-replication"];
    let group = SentinelGroup::with_tls();
    let plain = RedisServer::builder().tcp().start();
    let port = plain.port().expect("a port").to_string();
    for sentinel in group.sentinels() {
        sentinel.command(&["SENTINEL", "MONITOR", "plain", "127.0.0.1", &port, "2"]);
    }
    let ca = group.servers()[0].ca_pem().expect("an authority");
    let url = group.url().replace(SentinelGroup::MASTER, "plain");
    let builder = patient::builder().tls_root_ca(ca);
    let (kind, text) = refusal(builder.clone(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &BOTH);
    names(&text, &["does not speak TLS", &format!("127.0.0.1:{port}")]);
    let diagnosis = builder.connect_lazy(&*url).expect("good settings").diagnose().await;
    names(&diagnosis.to_string(), &BOTH);

    // Sentinels that let it in without TLS, and name a master that speaks nothing else.
    let ports: Vec<_> =
        group.sentinels().iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let url = format!("redis+sentinel://{}/{}", ports.join(","), SentinelGroup::MASTER);
    let (_, text) = refusal(patient::builder(), &url).await;
    names(&text, &BOTH);
    let locks = patient::builder().connect_lazy(&*url).expect("good settings");
    names(&locks.diagnose().await.to_string(), &BOTH);
}
