use std::{fs, path::Path, sync::Arc};

use leasehold_fencing::sqlx::{self, Connection, PgConnection};
use leasehold_testkit::PostgresServer;

async fn ask(url: &str, question: &str) -> String {
    let mut connection = PgConnection::connect(url).await.expect("the server answers");
    sqlx::query_scalar(sqlx::AssertSqlSafe(question)).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_server_lives_as_long_as_its_value() {
    let server = PostgresServer::builder().setting("statement_timeout", "12345").start();
    let (pid, folder) = (server.pid(), server.socket_folder().to_owned());
    assert_eq!(ask(&server.url(), "SHOW fsync").await, "off");
    assert_eq!(ask(&server.url(), "SHOW listen_addresses").await, "");
    assert_eq!(ask(&server.url(), "SHOW statement_timeout").await, "12345ms");
    assert!(server.log().contains("ready to accept connections"), "{}", server.log());
    let helpers = children(pid);
    assert!(!helpers.is_empty());
    drop(server);
    for process in helpers.into_iter().chain([pid]) {
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "{process}");
    }
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_port_is_the_servers_own() {
    let servers = [(); 2].map(|()| PostgresServer::builder().tcp().start());
    let [one, other] = servers.each_ref().map(|server| server.port().expect("a port"));
    assert_ne!(one, other);
    assert!(servers[0].url().contains(&format!("127.0.0.1:{one}/")));
    assert_eq!(ask(&servers[0].url(), "SHOW port").await, one.to_string());
}

#[test]
fn tests_of_one_process_share_a_server_while_they_use_it() {
    let one = PostgresServer::shared();
    assert!(Arc::ptr_eq(&one, &PostgresServer::shared()));
}

#[test]
fn a_setting_that_is_wrong_shows_the_log() {
    let wrong = || PostgresServer::builder().setting("no_such_setting", "1").start();
    let panic = std::panic::catch_unwind(wrong).expect_err("it does not start");
    let said = panic.downcast_ref::<String>().expect("a text");
    assert!(said.contains("no_such_setting"), "{said}");
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let of = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    of.split_whitespace().map(|child| child.parse().unwrap()).collect()
}
