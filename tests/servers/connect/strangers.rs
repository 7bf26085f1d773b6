//! Addresses at which something else answers than a master of Redis.

use std::{fs, os::unix::net::UnixStream, process::Command};

use axum::Router;
use leasehold::error::StoreErrorKind;
use leasehold_testkit::{ChildProcess, PostgresServer, RedisServer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{names, refusal};
use crate::support::{patient, wait};

const NO_REDIS: &str = "may not be a Redis server";

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://app:s3cret@{}/1", listener.local_addr().expect("an address"));
    (listener, url)
}

#[tokio::test]
async fn an_http_server() {
    let (listener, url) = listener().await;
    let serving = tokio::spawn(axum::serve(listener, Router::new()).into_future());
    let (_, text) = refusal(patient::builder(), &url).await;
    names(&text, &[NO_REDIS, "127.0.0.1"]);
    serving.abort();
}

#[tokio::test]
async fn an_ssh_server() {
    let (listener, url) = listener().await;
    let serving = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await?;
            socket.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await?;
            // It reads the line that should be the client's version, and hangs up.
            let _ = socket.read(&mut [0; 64]).await?;
            socket.write_all(b"Invalid SSH identification string.\r\n").await?;
        }
        #[expect(unreachable_code, reason = "names the type of the errors")]
        Ok::<_, std::io::Error>(())
    });
    let (_, text) = refusal(patient::builder(), &url).await;
    names(&text, &[NO_REDIS, "127.0.0.1"]);
    serving.abort();
}

#[tokio::test]
async fn a_postgresql_server() {
    let server = PostgresServer::builder().tcp().start();
    let port = server.port().expect("a port");
    for login in ["", "app:s3cret@"] {
        let url = format!("redis://{login}127.0.0.1:{port}");
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
        names(&text, &[NO_REDIS, &format!("127.0.0.1:{port}")]);
    }
}

#[tokio::test]
async fn a_sentinel() {
    let master = RedisServer::builder().tcp().start();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let config = folder.path().join("sentinel.conf");
    let port = master.port().expect("a port");
    let lines = format!(
        "port 0\nunixsocket {}\ndir {}\nsentinel monitor mymaster 127.0.0.1 {port} 1\n",
        socket.display(),
        folder.path().display()
    );
    fs::write(&config, lines).expect("a file");
    let mut command = Command::new(master.program());
    command.arg(&config).arg("--sentinel");
    let _sentinel = ChildProcess::spawn(command);
    // The file is there before anything listens on it.
    wait::until("a sentinel", || UnixStream::connect(&socket).is_ok()).await;
    for db in [0, 1] {
        let url = format!("redis+unix://{}?db={db}", socket.display());
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &["Sentinel", "master"]);
        assert!(!text.contains("6.2"), "{text}");
    }
}
