//! Servers and certificates that are set up wrong: the line says what to change, in the words of this program.

use std::{fs, path::Path};

use leasehold_testkit::RedisServer;
use tempfile::TempDir;

use crate::support::{Finished, LOCK, finished, leasehold};

fn run(url: &str, options: &[&str]) -> Finished {
    let words = [&["--url", url], options, &["run", "--try", LOCK, "--", "true"]].concat();
    finished(&mut leasehold(&words))
}

#[test]
fn a_command_that_is_missing_is_a_matter_of_configuration() {
    let server = RedisServer::builder().without("GETEX").start();
    let ended = run(&server.url(), &[]);
    let text = ended.complaint(78);
    assert!(text.contains("refuses GETEX, which keeps leases"), "{text}");
    assert!(text.contains("rename-command"), "{text}");
}

/// Files with what a client of a server shows and trusts.
fn files(server: &RedisServer) -> (TempDir, [String; 3]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = server.certificate();
    let ca = server.ca_pem().expect("an authority");
    let written =
        [("ca", ca), ("certificate", &*certificate), ("key", &*key)].map(|(name, pem)| {
            let path = folder.path().join(name);
            fs::write(&path, pem).expect("a file");
            path.display().to_string()
        });
    (folder, written)
}

#[test]
fn certificates_are_told_by_the_options() {
    let server = RedisServer::builder().tls().arg("tls-auth-clients", "yes").start();
    let (folder, [ca, certificate, key]) = files(&server);
    let empty = folder.path().join("empty").display().to_string();
    fs::write(Path::new(&empty), "").expect("a file");
    let is_empty = format!("--tls-ca: {empty} is empty");
    let shown = ["--tls-cert", &certificate, "--tls-key", &key];
    let swapped = ["--tls-cert", &key, "--tls-key", &certificate];
    for (options, says) in [
        (vec!["--tls-ca", &*empty], &*is_empty),
        (vec!["--tls-ca", "/no/such/file"], "--tls-ca: /no/such/file cannot be read"),
        (vec!["--tls-ca", &*ca], "give it one with --tls-cert and --tls-key"),
        (shown.to_vec(), "with --tls-ca"),
        ([&["--tls-ca", &*ca], &swapped[..]].concat(), "--tls-cert: "),
    ] {
        let ended = run(&server.url(), &options);
        let text = ended.complaint(78);
        assert!(text.contains(says), "no {says:?} in: {text}");
        assert!(!text.contains("tls_"), "{text}");
    }
    assert_eq!(run(&server.url(), &[&["--tls-ca", &*ca], &shown[..]].concat()).code, 0);
}
