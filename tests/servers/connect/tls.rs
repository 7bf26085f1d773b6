//! TLS: files that cannot serve, handshakes that fail, and certificates that are renewed while locks are held.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    error::{AcquireError, ConnectError, StoreErrorKind},
    redis::Pem,
};
use leasehold_testkit::{RedisServer, server::ClientPems};
use tempfile::TempDir;

use super::{names, refusal, use_lock};
use crate::support::{patient, wait};

/// The files of a client: the authority to trust, its certificate and key.
struct Files {
    folder: TempDir,
}

impl Files {
    fn of(server: &RedisServer) -> Self {
        let (certificate, key) = server.certificate();
        let ca = server.ca_pem().expect("an authority").to_owned();
        let files = Self { folder: tempfile::tempdir().expect("a folder") };
        files.write(&ClientPems { ca, certificate, key });
        files
    }

    /// Puts others in place, each at once, but one after the other.
    fn write(&self, pems: &ClientPems) {
        for (name, pem) in
            [("ca", &pems.ca), ("certificate", &pems.certificate), ("key", &pems.key)]
        {
            let new = self.path("new");
            fs::write(&new, pem).expect("a file");
            fs::rename(new, self.path(name)).expect("a file");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn used_by(&self, builder: LockRuntimeBuilder) -> LockRuntimeBuilder {
        builder.tls_root_ca(Pem::file(self.path("ca"))).tls_client_certificate(
            Pem::file(self.path("certificate")),
            Pem::file(self.path("key")),
        )
    }
}

fn closed() -> RedisServer {
    RedisServer::builder().tls().arg("tls-auth-clients", "yes").start()
}

/// What spoils a file, and what is said of it then.
type Case = (&'static str, Option<Vec<u8>>, &'static [&'static str]);

#[tokio::test]
async fn files_that_cannot_serve_are_told_when_a_runtime_is_made() {
    let (server, other) = (closed(), RedisServer::builder().tls().start());
    let ((certificate, key), (_, other_key)) = (server.certificate(), other.certificate());
    let der = || Some(vec![0x30, 0x82, 1, 1]);
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let cases: [Case; 10] = [
        ("ca", None, &["cannot be read"]),
        ("ca", text(""), &["is empty"]),
        ("ca", der(), &["is DER", "openssl x509"]),
        ("ca", text(&key), &["a key and no certificate"]),
        ("ca", text("hello"), &["no certificate in PEM"]),
        ("certificate", text(&key), &["swapped"]),
        ("key", text(&certificate), &["swapped"]),
        ("key", der(), &["is DER", "openssl pkey"]),
        (
            "key",
            text(&key.replace("PRIVATE", "ENCRYPTED PRIVATE")),
            &["is encrypted", "passphrase"],
        ),
        ("key", text(&other_key), &["is not the key of the certificate"]),
    ];
    for (name, bytes, says) in cases {
        let files = Files::of(&server);
        let path = files.path(name);
        match bytes {
            Some(bytes) => fs::write(&path, bytes).expect("a file"),
            None => fs::remove_file(&path).expect("a file"),
        }
        let setting = if name == "ca" { "tls_root_ca()" } else { "tls_client_certificate()" };
        let builder = || files.used_by(patient::builder());
        let (kind, text) = refusal(builder(), &server.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &[setting, &path.display().to_string()]);
        names(&text, says);
        let lazy = builder().connect_lazy(&server.url()).expect_err("the same");
        let ConnectError::Store(error) = lazy else { panic!("{lazy}") };
        names(&error.to_string(), says);
    }
}

#[tokio::test]
async fn what_a_server_says_of_a_client_certificate_is_told() {
    for versions in ["TLSv1.3", "TLSv1.2"] {
        let server = RedisServer::builder()
            .tls()
            .arg("tls-auth-clients", "yes")
            .arg("tls-protocols", versions)
            .start();
        let ca = || patient::builder().tls_root_ca(server.ca_pem().expect("an authority"));
        let (kind, text) = refusal(ca(), &server.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &["ask", "for a client certificate", "tls_client_certificate()"]);
        let other = RedisServer::builder().tls().start().certificate();
        let (kind, text) =
            refusal(ca().tls_client_certificate(other.0, other.1), &server.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &["refuses the client certificate", "tls-ca-cert-file"]);
        let own = server.certificate();
        let builder = ca().tls_client_certificate(own.0, own.1);
        use_lock(&builder.connect(&server.url()).await.expect("one of its own authority")).await;
    }
}

#[tokio::test]
async fn the_certificate_of_an_authority_as_that_of_a_server_is_told() {
    let server = RedisServer::builder().tls_as_authority().start();
    let builder = patient::builder().tls_root_ca(server.ca_pem().expect("an authority"));
    let (kind, text) = refusal(builder, &server.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["the certificate of an authority (CA:TRUE)", "CA:FALSE"]);
    assert!(!text.contains("OtherError"), "{text}");
}

#[tokio::test]
async fn certificates_for_an_address_without_tls_are_refused() {
    let server = RedisServer::builder().tls().start();
    let ca = server.ca_pem().expect("an authority");
    for url in ["redis://h", "redis+unix:///s", "redis+quorum://a,b,c", "redis+cluster://a,b"] {
        let builder = patient::builder().tls_root_ca(ca);
        let (kind, text) = refusal(builder.clone(), url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &["tls_root_ca()", "without TLS", "rediss"]);
        let lazy = builder.connect_lazy(url).map(drop).expect_err("no TLS").to_string();
        names(&lazy, &["tls_root_ca()", "without TLS"]);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_without_a_secret() {
    let server = RedisServer::builder().tcp().start();
    let url = server.url_with("app", "s3cret", 0).replace("redis://", "rediss://");
    let (kind, text) = refusal(patient::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["does not speak TLS", "redis instead of rediss"]);
    assert_eq!(server.calls("hello"), 0);
    // One that does not answer is not told as one without TLS.
    server.stop_signal();
    let (kind, text) = refusal(LockRuntime::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
    server.cont_signal();
}

/// Takes a lock again and again, until the task is ended.
async fn load(locks: LockRuntime) {
    let lock = locks.lock("load").expect("a name");
    loop {
        let guard = lock.acquire().wait(wait::CEILING).await.expect("no outage lasts");
        guard.release().await.expect("held to the end");
    }
}

/// Connections that a client made itself, not the test.
fn clients(server: &RedisServer) -> usize {
    let list: String = server.query(&["CLIENT", "LIST"]);
    list.lines().filter(|line| line.contains("name=leasehold")).count()
}

#[tokio::test]
async fn renewed_files_are_used_under_load_and_no_lease_is_lost() {
    let server = closed();
    let files = Files::of(&server);
    let builder = files.used_by(patient::builder().ttl(Duration::from_secs(20)));
    let locks = builder.connect(&server.url()).await.expect("certificates");
    let held = locks.lock("held").expect("a name").acquire().await.expect("a lease");
    let working = tokio::spawn(load(locks.clone()));
    for _ in 0..3 {
        // The old ones are no use from here on, and each connection is made anew.
        files.write(&server.renew_certificates());
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        wait::until("new connections", || clients(&server) >= 2).await;
        use_lock(&locks).await;
        assert!(held.is_held() && !working.is_finished());
    }
    working.abort();
    held.release().await.expect("held to the end");
}

/// The control: what stays as it is, is of no use after a renewal.
#[tokio::test]
async fn a_text_stays_as_it_is() {
    let server = closed();
    let (certificate, key) = server.certificate();
    let ca = server.ca_pem().expect("an authority");
    let builder = patient::builder().tls_root_ca(ca).tls_client_certificate(certificate, key);
    let locks = builder.connect(&server.url()).await.expect("certificates");
    use_lock(&locks).await;
    server.renew_certificates();
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let lock = locks.lock("a").expect("a name");
    let error = lock.try_acquire().await.expect_err("an old authority");
    names(&error.to_string(), &["tls_root_ca()"]);
    // The address is right, and the authority may be renewed.
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
}

/// A provider is asked for each connection; what it cannot give for now is tried again.
#[tokio::test]
async fn a_provider_is_asked_again_after_a_failure() {
    let server = closed();
    let files = Arc::new(Files::of(&server));
    let kept = Arc::clone(&files);
    let ca = Pem::read_by(move || fs::read(kept.path("ca")));
    let (certificate, key) = server.certificate();
    let builder = patient::builder().tls_root_ca(ca).tls_client_certificate(certificate, key);
    let locks = builder.connect(&server.url()).await.expect("certificates");
    use_lock(&locks).await;
    fs::rename(files.path("ca"), files.path("away")).expect("a file");
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let lock = locks.lock("a").expect("a name");
    let waiting = tokio::spawn(lock.acquire().wait(wait::CEILING).into_future());
    let error = locks.lock("b").expect("a name").try_acquire().await.expect_err("no authority");
    names(&error.to_string(), &["tls_root_ca()", "cannot be read", "read again"]);
    fs::rename(files.path("away"), files.path("ca")).expect("a file");
    let guard = wait::soon("a lease", waiting).await.expect("a task").expect("a lease");
    guard.release().await.expect("held to the end");
}
