use std::{panic, path::Path, time::Duration};

use leasehold_testkit::RedisServer;

#[test]
fn a_server_lives_as_long_as_its_value() {
    let server = RedisServer::start();
    let (pid, socket) = (server.pid(), server.socket().to_owned());
    assert!(server.url().starts_with("redis+unix:///tmp/lh-"), "{}", server.url());
    assert_eq!(server.query::<String>(&["PING"]), "PONG");
    assert_eq!(server.query::<Vec<String>>(&["CONFIG", "GET", "save"]), ["save", ""]);
    assert!(server.log().contains("eady to accept connections"), "{}", server.log());
    server.command(&["DEBUG", "SLEEP", "0"]);
    drop(server);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!socket.exists());
}

#[test]
fn a_restart_keeps_the_address_and_loses_the_data() {
    let server = RedisServer::builder().tcp().start();
    let (url, pid) = (server.url(), server.pid());
    server.command(&["SET", "k", "v"]);
    server.restart();
    assert_eq!(server.url(), url);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.query::<Option<String>>(&["GET", "k"]), None);
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(redis::cmd("PING").query::<String>(&mut connection).unwrap(), "PONG");
    server.kill();
    assert!(server.try_query::<String>(&["PING"]).is_err());
}

#[test]
fn a_stopped_server_keeps_silent_until_it_goes_on() {
    let server = RedisServer::start();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().chars().next().unwrap()
    };
    for _ in 0..3 {
        server.stop_signal();
        assert_eq!(state(), 'T');
        server.cont_signal();
        assert_eq!(server.query::<String>(&["PING"]), "PONG");
    }
    server.stop_signal();
}

#[test]
fn the_test_keeps_its_rights_whatever_it_does_to_the_default_user() {
    let server = RedisServer::builder().password("pa:ss@/w%rd").start();
    for (password, lets_in) in [("", false), ("wrong", false), ("pa:ss@/w%rd", true)] {
        let client = redis::Client::open(server.url_with("", password, 2)).unwrap();
        let pong =
            client.get_connection().and_then(|mut c| redis::cmd("PING").query::<String>(&mut c));
        assert_eq!(pong.is_ok(), lets_in, "{password:?}");
    }
    server.command(&["ACL", "SETUSER", "default", "off"]);
    assert_eq!(server.query::<String>(&["PING"]), "PONG");
}

#[test]
fn keys_without_ttl_are_found_in_every_database() {
    let server = RedisServer::start();
    assert!(server.keys_without_ttl().is_empty());
    server.command(&["SET", "mortal", "1", "PX", "60000"]);
    server.command(&["SET", "immortal", "1"]);
    server.command(&["SET", "moved", "1"]);
    server.command(&["MOVE", "moved", "3"]);
    assert_eq!(server.keys_without_ttl(), ["0/immortal", "3/moved"]);
    server.flush_all();
    assert!(server.keys_without_ttl().is_empty());
}

#[test]
fn a_server_with_tls_shows_its_authority_and_speaks_nothing_else() {
    let server = RedisServer::builder().tls().start();
    assert!(server.url().starts_with("rediss://127.0.0.1:"));
    assert!(server.ca_pem().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(server.query::<String>(&["PING"]), "PONG");
    let plain = server.url().replace("rediss:", "redis:");
    let client = redis::Client::open(plain).unwrap();
    assert!(client.get_connection_with_timeout(Duration::from_secs(5)).is_err());
    assert_eq!(RedisServer::start().ca_pem(), None);
}

#[test]
fn arguments_reach_the_server() {
    let server = RedisServer::builder().arg("maxmemory", "7mb").arg("appendonly", "yes").start();
    let maxmemory: Vec<String> = server.query(&["CONFIG", "GET", "maxmemory"]);
    assert_eq!(maxmemory[1], "7340032");
    server.command(&["SET", "k", "v"]);
    // Redis writes to its file before it answers: a kill loses nothing that was answered.
    server.restart();
    assert_eq!(server.query::<String>(&["GET", "k"]), "v");
}

#[test]
fn a_failed_start_says_why() {
    let why = |start: fn()| {
        let panic = panic::catch_unwind(start).unwrap_err();
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
    };
    let missing = why(|| drop(RedisServer::builder().program("no-such-redis-server").start()));
    assert!(missing.as_ref().unwrap().contains("scripts/test.sh --install"), "{missing:?}");
    let wrong = why(|| drop(RedisServer::builder().arg("no-such-line", "1").start()));
    assert!(wrong.as_ref().unwrap().contains("no-such-line"), "{wrong:?}");
}
