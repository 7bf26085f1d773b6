//! What the server refuses while a run waits, holds its lock or gives it back.

use std::{fs, path::Path};

use leasehold_testkit::RedisServer;

use crate::support::{LOCK, Running, finished, leasehold, settled, value};

/// A user `app` with this password, beside the default one.
fn server() -> RedisServer {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "on", ">old", "~*", "&*", "+@all"]);
    server
}

/// From now on connections of that user need another password, and the present ones are cut.
fn change_password(server: &RedisServer) {
    server.command(&["ACL", "SETUSER", "app", ">new", "<old"]);
    server.command(&["CLIENT", "KILL", "USER", "app"]);
}

/// A script that begins, and goes on until the second file is there.
fn until(begun: &Path, end: &Path) -> String {
    format!("touch {}; while ! test -e {}; do sleep 0.05; done", begun.display(), end.display())
}

/// A run that holds the lock until the file is there.
fn holder(server: &RedisServer, folder: &Path) -> Running {
    let (begun, end) = (folder.join("begun"), folder.join("end"));
    let mut command = leasehold(["run", LOCK, "--", "sh", "-c", &until(&begun, &end)]);
    Running::begun(command.env("REDIS_URL", server.url()), &begun)
}

fn until_it_waits(server: &RedisServer) {
    settled(|| (value(server, LOCK)["waiters"][0]["position"] == 1).then_some(()));
}

/// Nobody gives this process another password, so waiting does not help.
#[test]
fn a_login_that_is_refused_ends_a_wait() {
    for limit in [&["--wait-forever"][..], &["--wait", "1h"]] {
        for in_address in [false, true] {
            let (server, folder) = (server(), tempfile::tempdir().unwrap());
            let _holder = holder(&server, folder.path());
            let words = [&["run"], limit, &[LOCK, "--", "true"]].concat();
            let mut waiter = leasehold(&words);
            if in_address {
                waiter.env("REDIS_URL", server.url_with("app", "old", 0));
            } else {
                waiter.env("REDIS_URL", server.url());
                waiter.env("REDIS_USERNAME", "app").env("REDIS_PASSWORD", "old");
            }
            let waiter = Running::start(&mut waiter);
            until_it_waits(&server);
            change_password(&server);
            let ended = waiter.end();
            let text = ended.last_complaint(78);
            assert!(text.contains("WRONGPASS") && text.contains("--password-file"), "{text}");
        }
    }
}

/// The control: a file is read again for each connection, and somebody may write the new password into it.
#[test]
fn a_wait_with_a_password_file_goes_on_until_the_file_has_the_new_password() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let holder = holder(&server, folder.path());
    let file = folder.path().join("password");
    fs::write(&file, "old").unwrap();
    let options = ["--user", "app", "--password-file", file.to_str().unwrap()];
    let words = [&options[..], &["run", "--wait-forever", LOCK, "--", "true"]].concat();
    let mut waiter = Running::start(leasehold(&words).env("REDIS_URL", server.url()));
    until_it_waits(&server);
    let is_denied = || format!("{:?}", server.command(&["ACL", "LOG"])).contains("auth");
    change_password(&server);
    settled(|| is_denied().then_some(()));
    fs::write(folder.path().join("end"), "").unwrap();
    holder.end().well();
    assert!(!waiter.has_ended());
    fs::write(&file, "new").unwrap();
    waiter.end().well();
}

/// The renewals were answered, by a refusal that may pass.
#[test]
fn a_refusal_of_renewals_is_told_as_the_cause_of_a_loss() {
    for change in
        [&["REPLICAOF", "127.0.0.1", "1"][..], &["CONFIG", "SET", "min-replicas-to-write", "2"]]
    {
        for options in [&[][..], &["--grace-after"]] {
            let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
            let file = folder.path().join("begun");
            let script = format!("touch {}; exec sleep 100", file.display());
            let words = [&["run", "--ttl", "1s"], options, &[LOCK, "--", "sh", "-c", &script]];
            let mut command = leasehold(words.concat());
            let running = Running::begun(command.env("REDIS_URL", server.url()), &file);
            server.command(change);
            let ended = running.end();
            let text = ended.last_complaint(76);
            let says = if change[0] == "CONFIG" { "NOREPLICAS" } else { "the server is a replica" };
            assert!(text.contains(says), "{options:?}: {text}");
            assert!(!text.contains("had no file descriptors"), "{options:?}: {text}");
        }
    }
}

/// A lock that opens sooner is no second write, unless it is that of a `--once`.
#[test]
fn a_lock_that_is_not_kept_closed_is_told_as_that() {
    for option in ["--min-hold", "--once"] {
        let (server, folder) = (server(), tempfile::tempdir().unwrap());
        let (begun, end) = (folder.path().join("begun"), folder.path().join("end"));
        let words = ["run", option, "1m", LOCK, "--", "sh", "-c", &until(&begun, &end)];
        let mut command = leasehold(words);
        let running =
            Running::begun(command.env("REDIS_URL", server.url_with("app", "old", 0)), &begun);
        server.command(&["ACL", "SETUSER", "app", "-evalsha", "-eval"]);
        fs::write(&end, "").unwrap();
        let ended = running.end();
        let text = ended.complaint(0);
        assert!(text.contains("will not keep the lock closed"), "{option}: {text}");
        let of_once = text.contains("after a once, let the storage refuse");
        assert_eq!(of_once, option == "--once", "{option}: {text}");
    }
}

/// The line is the last that is heard: nothing is tried again.
#[test]
fn a_program_that_ends_does_not_say_that_it_tries_again() {
    for url in
        ["redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1", "redis+unix:///no/such/socket"]
    {
        let ended = finished(leasehold(["run", LOCK, "--", "true"]).env("REDIS_URL", url));
        let text = ended.complaint(69);
        assert!(!text.contains("retried"), "{text}");
        let has_another_form = text.contains("--url redis://HOST:6379");
        assert_eq!(has_another_form, url.starts_with("redis://"), "{text}");
    }
}
