//! Bad input is a typed error that names the lock and the remedy, before anything is written.
//!
//! What only a server can refuse (addresses, rights, versions, foreign keys) is tested in
//! `tests/servers`; a guard used after its release does not compile (see its documentation).

use std::time::Duration;

use leasehold::{
    Acquire, LockRuntime, NamePattern,
    error::{
        AcquireError, ConnectError, InspectError, NameError, OptionsError, StoreErrorKind,
        WithError,
    },
    redis::{RedisConfig, RedisPool},
    store::FenceSettings,
};
use leasehold_core::{Class, Namespace, Ttl};
use leasehold_testkit::CommandKind;

use crate::support::{World, just_before, millis, nanos, on_every_store, secs};

const NAME: &str = World::NAME;
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn assert_says(error: &dyn std::error::Error, words: &[&str]) {
    let said = error.to_string();
    for word in words {
        assert!(said.contains(word), "{said:?} does not say {word:?}");
    }
}

fn nothing_was_sent(world: &World) {
    for kind in CommandKind::ALL {
        assert_eq!(world.store.sent(kind), 0, "{kind:?}");
    }
}

/// A name, what it is refused as, and the words that the refusal has.
type BadName<'a> = (&'a str, fn(&NameError) -> bool, &'a [&'a str]);

/// An option, what it is refused as, and the words that the refusal has.
type BadOption<'a> = (fn(Acquire) -> Acquire, fn(&OptionsError) -> bool, &'a [&'a str]);

on_every_store! {
    async fn names_that_cannot_be_locks_are_refused(world: World) {
        let locks = world.runtime(1);
        let long = "x".repeat(513);
        let cases: [BadName<'_>; 4] = [
            ("", |e| matches!(e, NameError::Empty), &["empty", "1 to 512 bytes"]),
            (&long, |e| matches!(e, NameError::TooLong { bytes: 513 }), &["513", "512", "shorten"]),
            ("}x", |e| matches!(e, NameError::BreaksHashTag { name } if name == "}x"),
                &["\"}x\"", "put another character first"]),
            ("a\0b", |e| matches!(e, NameError::ContainsNul), &["NUL", "remove it"]),
        ];
        for (name, is_expected, words) in cases {
            let error = locks.lock(name).unwrap_err();
            assert!(is_expected(&error), "{error:?}");
            assert_says(&error, words);
            for error in [
                locks.inspect(name).await.unwrap_err(),
                locks.force_release(name).await.unwrap_err(),
            ] {
                assert!(matches!(&error, InspectError::Name(error) if is_expected(error)));
                assert_says(&error, words);
            }
        }
        nothing_was_sent(&world);
        // At the limits, names are names.
        for name in ["x".repeat(512), "a}b{c}".into(), "{a}".into(), " ".into(), "ä/ö".into()] {
            let guard = locks.lock(&name).unwrap().try_acquire().await.unwrap().unwrap();
            assert_eq!(guard.name().as_str(), name);
            guard.release().await.unwrap();
        }
    }

    async fn options_out_of_range_are_refused(world: World) {
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        let ttl = |e: &OptionsError| matches!(e, OptionsError::Setting(_));
        let wait = |e: &OptionsError| matches!(e, OptionsError::Wait { .. });
        let max_hold = |e: &OptionsError| matches!(e, OptionsError::MaxHold);
        let cases: [BadOption<'_>; 8] = [
            (|a| a.ttl(Duration::ZERO), ttl, &["0ns", "100ms", "86400s"]),
            (|a| a.ttl(just_before(millis(100))), ttl, &["choose one between"]),
            (|a| a.ttl(Ttl::MAX + nanos(1)), ttl, &["choose one between"]),
            (|a| a.ttl(Duration::MAX), ttl, &["out of range"]),
            (|a| a.wait(YEAR + nanos(1)), wait, &["31536000s", "wait_forever()"]),
            (|a| a.wait(Duration::MAX), wait, &["wait_forever()"]),
            (|a| a.max_hold(Duration::ZERO), max_hold, &["max_hold of zero", "leave it out"]),
            (|a| a.ttl(Duration::ZERO).wait(Duration::MAX), ttl, &["ttl"]),
        ];
        for (with, is_expected, words) in cases {
            let error = with(lock.acquire()).await.unwrap_err();
            let AcquireError::Options { lock: name, option: source } = &error else { panic!("{error}") };
            assert!(name.as_str() == NAME && is_expected(source), "{error:?}");
            assert_says(&error, &[&["\"orders/42\""], words].concat());
            let body = async |_| Ok::<(), ()>(());
            let error = with(lock.acquire()).with(body).await.unwrap_err();
            assert!(matches!(error, WithError::Acquire(AcquireError::Options { .. })), "{error:?}");
        }
        for with in [cases[0].0, cases[6].0] {
            let error = with(lock.acquire()).try_acquire().await.unwrap_err();
            assert!(matches!(error, AcquireError::Options { .. }));
        }
        nothing_was_sent(&world);
    }

    async fn options_at_their_limits_are_accepted(world: World) {
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        let accepted: [fn(Acquire) -> Acquire; 6] = [
            |a| a.ttl(millis(100)),
            |a| a.ttl(Ttl::MAX),
            |a| a.wait(Duration::ZERO),
            |a| a.wait(YEAR),
            |a| a.max_hold(Duration::MAX),
            |a| a.wait_forever(),
        ];
        for with in accepted {
            with(lock.acquire()).await.unwrap().release().await.unwrap();
        }
    }

    async fn an_owner_of_another_runtime_is_refused(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let foreign = locks.lock(NAME).unwrap().acquire().owner(&other.owner());
        let error = foreign.await.unwrap_err();
        assert!(matches!(&error, AcquireError::ForeignOwner { lock } if lock.as_str() == NAME));
        assert_says(&error, &["\"orders/42\"", "owner()"]);
        nothing_was_sent(&world);
    }

    async fn classes_that_cannot_label_metrics_are_refused(world: World) {
        let locks = world.runtime(1);
        for bad in ["", "orders/42", "a b", "ä", &"x".repeat(65)] {
            let error = locks.lock(NAME).unwrap().class(bad).acquire().await.unwrap_err();
            let AcquireError::Options { option: OptionsError::Class(_), .. } = &error else { panic!("{error}") };
            assert_says(&error, &["\"orders/42\"", &format!("{bad:?}"), "1 to 64 ASCII letters"]);
        }
        nothing_was_sent(&world);
        assert!(Class::new("x".repeat(64)).is_ok());
        locks.lock(NAME).unwrap().class("a b").class("order-lines.v2").acquire().await.unwrap()
            .release().await.unwrap();
    }
}

#[test]
fn namespaces_that_cannot_prefix_keys_are_refused() {
    for bad in ["", "{", "a{b}", "a}", "a b", "ä", "a\0", &"x".repeat(65)] {
        let error = Namespace::new(bad).unwrap_err();
        assert_says(&error, &[&format!("{bad:?}"), "without braces"]);
    }
    assert!(Namespace::new("team-a:prod/eu_1.2").is_ok());
}

#[tokio::test]
async fn a_bad_namespace_is_refused_before_the_server_is_asked() {
    let builder = LockRuntime::builder().namespace("a{b}");
    let error = builder.connect("redis://127.0.0.1:1").await.unwrap_err();
    assert!(matches!(error, ConnectError::Namespace(_)), "{error:?}");
    assert_says(&error, &["\"a{b}\"", "without braces"]);
}

#[tokio::test]
async fn settings_out_of_range_are_refused() {
    let builder = LockRuntime::builder;
    for ttl in [Duration::ZERO, millis(99), Ttl::MAX + nanos(1), Duration::MAX] {
        for error in [
            builder().ttl(ttl).embedded().unwrap_err(),
            builder().ttl(ttl).connect("redis://127.0.0.1:1").await.unwrap_err(),
        ] {
            assert!(matches!(error, ConnectError::Setting(_)), "{error:?}");
            assert_says(&error, &["ttl", "choose one between"]);
        }
    }
    let short = [
        (builder().claim_window(millis(49)), "claim window", "50ms"),
        (builder().claim_window(Duration::ZERO), "claim window", "50ms"),
        (builder().command_timeout(millis(9)), "command timeout", "10ms"),
    ];
    for (builder, what, least) in short {
        for error in [
            builder.clone().embedded().unwrap_err(),
            builder.connect("redis://127.0.0.1:1").await.unwrap_err(),
        ] {
            assert!(matches!(error, ConnectError::Options(_)), "{error:?}");
            assert_says(&error, &[what, least, "choose at least"]);
        }
    }
    let limits = builder().ttl(millis(100)).claim_window(millis(50)).command_timeout(millis(10));
    let locks = limits.embedded().unwrap();
    assert!(locks.lock(NAME).unwrap().try_acquire().await.unwrap().is_some());
    // Settings that are longer than a ttl are cut down to it.
    let long = builder().claim_window(Duration::MAX).command_timeout(Duration::MAX);
    let locks = long.embedded().unwrap();
    assert!(locks.lock(NAME).unwrap().try_acquire().await.unwrap().is_some());
}

#[test]
fn a_retention_out_of_range_is_refused() {
    let (least, most) = (FenceSettings::MIN_RETENTION, FenceSettings::MAX_RETENTION);
    let kept = |retention| {
        let settings = FenceSettings::default;
        let of_some = settings().retention_of(NamePattern::default(), retention);
        [settings().retention(retention), of_some]
    };
    for retention in [Duration::ZERO, just_before(least), most + nanos(1), Duration::MAX] {
        for error in kept(retention).map(Result::unwrap_err) {
            assert_says(&error, &["retention", "choose one between 3600s and 315360000s"]);
        }
    }
    assert!([least, most].into_iter().flat_map(kept).all(|kept| kept.is_ok()));
}

/// The number of connections and the timeouts of making one belong to a server's settings.
#[tokio::test]
async fn settings_of_connections_out_of_range_are_refused_before_the_server_is_asked() {
    let builder = LockRuntime::builder;
    for (builder, words) in [
        (builder().connections(0), ["number of connections of 0", "between 1 and 16"]),
        (builder().connections(17), ["number of connections of 17", "between 1 and 16"]),
        (builder().connect_timeout(millis(9)), ["connect timeout of 9ms", "at least 10ms"]),
    ] {
        let error = builder.connect("redis://127.0.0.1:1").await.unwrap_err();
        assert!(matches!(error, ConnectError::Setting(_)), "{error:?}");
        assert_says(&error, &words);
    }
    let config = || RedisConfig::new("redis://127.0.0.1:1").unwrap();
    for config in [config().pool_size(0), config().pool_size(257)] {
        let error = RedisPool::new(&config).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Config);
        assert_says(&error, &["pool size", "between 1 and 256"]);
    }
    let pool = RedisPool::new(&config()).unwrap();
    assert_says(&pool.command_timeout(Duration::ZERO).unwrap_err(), &["command timeout of 0ns"]);
}

/// A default wait that overflows is refused at the latest when it would be waited for.
#[tokio::test]
async fn a_default_wait_that_overflows_is_refused() {
    match LockRuntime::builder().wait(Duration::MAX).embedded() {
        Err(error) => assert_says(&error, &["wait"]),
        Ok(locks) => {
            let error = locks.lock(NAME).unwrap().acquire().await.unwrap_err();
            assert!(matches!(error, AcquireError::Options { .. }));
            assert_says(&error, &["\"orders/42\"", "wait_forever()"]);
        }
    }
}

#[tokio::test]
async fn addresses_that_are_none_are_refused_without_their_password() {
    for bad in ["", "redis://", "http://127.0.0.1", "127.0.0.1:6379", "redis://:hunter2@host:x"] {
        let Err(error) = LockRuntime::connect(bad).await else { panic!("{bad:?} is accepted") };
        assert!(matches!(error, ConnectError::Address(_)), "{bad:?}: {error:?}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

/// Outside of tokio there is nothing to connect on, unless a thread is asked for.
#[test]
fn connecting_outside_of_tokio_says_what_to_do() {
    let mut connecting = Box::pin(LockRuntime::connect("redis://127.0.0.1:1"));
    let polled = crate::support::poll_once(connecting.as_mut());
    let std::task::Poll::Ready(Err(error)) = polled else { panic!("there is no tokio here") };
    assert!(matches!(error, ConnectError::NoTokio), "{error:?}");
    assert_says(&error, &["own_thread()"]);
}

/// A timeout says how long it waited, who holds the lock, and whether that is this very runtime.
#[tokio::test]
async fn a_timeout_says_who_holds_the_lock() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.start(world.builder(2).service("billing")));
    for (holder, mine) in [(&locks, true), (&other, false)] {
        let guard = holder.lock(NAME).unwrap().acquire().await.unwrap();
        let lock = locks.lock(NAME).unwrap();
        let (outcome, ()) = tokio::join!(
            biased;
            async { lock.acquire().wait(secs(2)).await },
            world.pass(secs(3)),
        );
        let Err(AcquireError::Timeout(timeout)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(timeout.waited, secs(2));
        let info = timeout.holder.as_ref().expect("the store can tell");
        assert_eq!((info.lease, info.fence), (guard.id(), guard.fence()));
        assert_eq!((info.held_for, info.this_runtime), (secs(2), mine));
        let remedy = if mine { "owner.scope()" } else { "wait longer" };
        assert_says(&*timeout, &["\"orders/42\"", "2s", remedy, &guard.id().to_string()]);
        assert_eq!(timeout.to_string().contains("this very runtime"), mine);
        assert_eq!(timeout.to_string().contains("/billing"), !mine);
        guard.release().await.unwrap();
    }
}

/// Wrong addresses, and the words by which each is refused: the part that is wrong, and what to do.
const WRONG_ADDRESSES: &[(&str, &[&str])] = &[
    ("", &["empty", "redis://host:port"]),
    ("  ", &["empty"]),
    ("localhost", &["scheme", "redis://localhost"]),
    ("127.0.0.1:6379", &["scheme", "redis://127.0.0.1:6379"]),
    ("redis:6379", &["scheme", "redis://redis:6379"]),
    ("/run/redis.sock", &["scheme", "redis+unix:///run/redis.sock"]),
    ("app:s3cret@h:1", &["scheme", "redis://"]),
    ("http://app:s3cret@h", &["scheme `http`", "rediss:// for TLS"]),
    ("postgres://app:s3cret@h/db", &["scheme `postgres`"]),
    ("redis+sentinel://app:s3cret@h:26379", &["name of the master", "missing", "/mymaster"]),
    ("redis+sentinel://app:s3cret@h,,i/m", &["host", "missing"]),
    ("redis+sentinel://h/my%20master", &["name of the master", "Sentinels refuse"]),
    (
        "redis-sentinel://h:26379",
        &["`redis-sentinel`", "redis+sentinel://host,host,host/master", "Sentinels know"],
    ),
    (
        "redis-cluster://h:1",
        &["`redis-cluster`", "redis+cluster://host,host,host", "of the Cluster"],
    ),
    ("redis+cluster://h:1/2", &["a Cluster has no databases but 0", "redis+cluster://h:1"]),
    ("redis+cluster://a,b,a:6379", &["a:6379 is listed twice", "once", "redis+cluster"]),
    ("redis+cluster://a,b?readonly=s3cret", &["`readonly`", "leave it out"]),
    ("redis+cluster://app:s3/cret@a,b", &["`/`", "%2F"]),
    (
        "redis://a:1,b:2,c:3",
        &[
            "list of hosts",
            "one server",
            "redis://a:1",
            "Sentinels: redis+sentinel://",
            "Cluster: ",
        ],
    ),
    ("redis://app:s3cret@a,b", &["list of hosts", "one server", "of Sentinels", "of a Cluster"]),
    ("redis://", &["host", "missing"]),
    ("redis:///3", &["host", "missing"]),
    ("redis://app:s3cret@:6379", &["host", "missing"]),
    ("redis://my host", &["host", "`my host`"]),
    ("redis://[::1", &["host", "bracket"]),
    ("redis://::1", &["host", "brackets", "redis://[::1]"]),
    ("redis://fe80::1:6379", &["host", "brackets"]),
    ("redis://0.0.0.0:6379", &["host", "0.0.0.0", "127.0.0.1"]),
    ("redis://app:s3cret@h:99999", &["port", "99999", "1 to 65535"]),
    ("redis://h:0", &["port", "`0`", "1 to 65535"]),
    ("redis://h:redis", &["port", "1 to 65535"]),
    // A password where the port belongs is not repeated.
    ("redis://app:s3cret", &["port", "1 to 65535", "@"]),
    ("redis://:s3cret", &["host"]),
    ("redis://h/x", &["database", "`x`", "redis://h/0"]),
    ("redis://app:s3cret@h:1/-1", &["database", "`-1`"]),
    ("redis://h/1/2", &["database", "`1/2`"]),
    ("redis://h?db=3", &["database", "redis://h/3"]),
    ("redis+unix:///s?db=x", &["database", "`x`"]),
    ("redis://app:s3/cret@h", &["password", "%2F"]),
    ("redis://:s3#cret@h", &["password", "%23"]),
    ("redis://:s3?cret@h:1", &["password", "%3F"]),
    ("redis://app:s3%FFcret@h", &["password", "UTF-8"]),
    ("redis+unix:///s?user=a&pass=s3#cret", &["password", "%23"]),
    ("redis+unix:///s?user=a&pass=s3+cret", &["password", "%2B"]),
    ("redis+unix:///s?user=a&pass=s3&cret", &["password", "%26"]),
    ("redis://app@h", &["user", "password", "redis://:password@"]),
    ("redis+unix:///s?user=app", &["user", "password"]),
    ("redis://h?password=s3cret", &["password", "redis://:password@"]),
    ("redis+unix://", &["path", "socket"]),
    ("unix://tmp/s", &["path", "socket", "unix:///tmp/s"]),
    ("rediss://h#insecure", &["TLS", "verification"]),
];

/// Text that only makes sense for another fault than the one that is told.
const ADVICE: [&str; 6] =
    ["Cargo.toml", "Sentinel", "Cluster", "percent", "brackets", "1 to 65535"];

#[tokio::test]
async fn the_wrong_part_of_an_address_is_named() {
    let mut faults = Vec::new();
    for (address, words) in WRONG_ADDRESSES {
        let Err(error) = LockRuntime::connect(*address).await else { panic!("{address:?}") };
        let (said, shown) = (error.to_string(), format!("{error:?}"));
        let mut complain = |what: String| faults.push(format!("{address:?}: {what}: {said}"));
        if !matches!(error, ConnectError::Address(_)) {
            complain("is no bad address".into());
        }
        for word in words.iter().filter(|word| !said.contains(*word)) {
            complain(format!("does not say {word:?}"));
        }
        for word in ADVICE {
            if said.contains(word) && !words.concat().contains(word) {
                complain(format!("says {word:?}"));
            }
        }
        if [&said, &shown].iter().any(|text| text.contains("cret") || text.contains("s3")) {
            complain("tells the password".into());
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A client's settings are checked like those of a text.
#[tokio::test]
async fn a_client_that_cannot_be_used_is_refused() {
    use leasehold::{error::AddressPart, redis::client::Client};
    let client = Client::open("redis://app@h").unwrap();
    let ConnectError::Address(error) = LockRuntime::connect(client).await.unwrap_err() else {
        panic!("a user without a password is accepted")
    };
    assert_eq!(error.part(), AddressPart::Login);
    assert_says(&error, &["\"redis://h:6379/0\"", "user", "redis://user:password@host"]);
    let ConnectError::Address(error) = LockRuntime::connect_lazy("redis://h:x").unwrap_err() else {
        panic!("a port that is none is accepted")
    };
    assert_eq!(error.part(), AddressPart::Port);
}

/// A lazy runtime needs something to run on, too.
#[test]
fn connecting_lazily_outside_of_tokio_says_what_to_do() {
    let error = LockRuntime::connect_lazy("redis://127.0.0.1:1").unwrap_err();
    assert!(matches!(error, ConnectError::NoTokio), "{error:?}");
    assert_says(&error, &["own_thread()"]);
    LockRuntime::builder().own_thread().connect_lazy("redis://127.0.0.1:1").unwrap();
}
