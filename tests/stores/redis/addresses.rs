//! Every kind of address leads to the server, and none shows a password.

use leasehold_core::{Namespace, StoreErrorKind};
use leasehold_testkit::{RedisServer, contract::alice};

use super::support::{assert_says, calls, config, connect, connect_with, granted};

/// The keys of a database, sorted.
fn keys(server: &RedisServer, db: u32) -> Vec<String> {
    const IN: &str = "redis.call('SELECT', ARGV[1]) return redis.call('KEYS', '*')";
    let mut keys: Vec<String> = server.query(&["EVAL", IN, "0", &db.to_string()]);
    keys.sort();
    keys
}

#[tokio::test]
async fn unix_sockets_and_ports_lead_to_the_server() {
    for server in [RedisServer::start(), RedisServer::builder().tcp().start()] {
        let store = connect(&server.url()).await.expect("an address");
        granted(&calls(&store), alice(1)).await;
        calls(&store).inspect().await.expect("inspect");
        assert_eq!(keys(&server, 0), ["leasehold:{orders/42}:lease"]);
    }
}

#[tokio::test]
async fn a_database_number_is_used_by_every_connection() {
    for server in [RedisServer::start(), RedisServer::builder().tcp().start()] {
        let store = connect(&server.url_with("", "", 3)).await.expect("a database");
        let calls = calls(&store);
        let fence = granted(&calls, alice(1)).await;
        calls.inspect().await.expect("inspect");
        calls.force_release(alice(1), fence).await.expect("force_release");
        assert_eq!(keys(&server, 3), ["leasehold:{orders/42}:lease"]);
        assert_eq!(keys(&server, 0), [""; 0]);
        let error = connect(&server.url_with("", "", 99)).await.expect_err("16 databases");
        assert_says(&error, StoreErrorKind::Config, "out of range", "database number");
    }
}

#[tokio::test]
async fn a_namespace_keeps_systems_apart() {
    let server = RedisServer::start();
    let one = connect(&server.url()).await.expect("a server");
    let namespace = Namespace::new("team-b").expect("a namespace");
    let other = connect_with(&config(&server.url()).namespace(namespace)).await.expect("a server");
    granted(&calls(&one), alice(1)).await;
    granted(&calls(&other), alice(2)).await;
    assert_eq!(keys(&server, 0).len(), 2);
}

#[tokio::test]
async fn a_user_and_a_password_are_used_and_never_shown() {
    for server in [RedisServer::start(), RedisServer::builder().tcp().start()] {
        let user = ["ACL", "SETUSER", "app", "on", ">se:s@me/?", "~*", "&*", "+@all"];
        server.command(&user);
        server.command(&["ACL", "SETUSER", "default", "off"]);
        let config = config(&server.url_with("app", "se:s@me/?", 0));
        let store = connect_with(&config).await.expect("user and password are right");
        granted(&calls(&store), alice(1)).await;
        calls(&store).inspect().await.expect("inspect");

        server.command(&["ACL", "SETUSER", "app", ">another", "<se:s@me/?"]);
        let error = connect_with(&config).await.expect_err("the password was changed");
        assert_says(&error, StoreErrorKind::Config, "", "user and password");
        let shown = format!("{error} {error:?} {config:?} {store:?} {:?}", store.pool());
        assert!(!shown.contains("s@me") && !shown.contains("s%40me"), "{shown}");
    }
}
