//! `leasehold health`.

use leasehold_testkit::RedisServer;

use crate::support::{Finished, LOCK, finished, leasehold};

fn health(url: &str) -> Finished {
    finished(leasehold(["health"]).env("REDIS_URL", url))
}

#[test]
fn the_exit_code_says_whether_locks_can_be_used() {
    let server = RedisServer::builder().tcp().start();
    let well = health(&server.url());
    assert_eq!((well.code, well.out.as_str()), (0, "the server answers\n"), "{well:?}");

    server.stop_signal();
    let silent = health(&server.url());
    server.cont_signal();
    assert_eq!((silent.code, silent.out.as_str()), (69, ""), "{silent:?}");
    assert_eq!(health(&server.url()).code, 0, "it is back");

    server.kill();
    let gone = health(&server.url());
    assert_eq!((gone.code, gone.out.as_str()), (69, ""), "{gone:?}");
    server.restart();
    assert_eq!(health(&server.url()).code, 0, "it is back");

    server.command(&["ACL", "SETUSER", "default", "-getex"]);
    let denied = health(&server.url());
    assert!(denied.code == 78 && denied.err.to_lowercase().contains("getex"), "{denied:?}");
}

/// Redis refuses no write of a script behind its first one.
#[test]
fn a_full_server_is_told_and_still_looked_at() {
    let server = RedisServer::builder().tcp().start();
    let ask = |words: &[&str]| finished(leasehold(words).env("REDIS_URL", server.url()));
    ask(&["run", LOCK, "--", "true"]).well();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let full = health(&server.url());
    let text = full.complaint(69);
    assert!(text.contains("OOM") && text.contains("raise maxmemory"), "{text}");
    let examined = ask(&["doctor"]);
    assert_eq!(examined.code, 2, "{examined:?}");
    for words in ["danger: scripts", "OOM", "raise maxmemory"] {
        assert!(examined.out.contains(words), "{examined:?}");
    }
    assert!(!format!("{full:?} {examined:?}").contains('\u{fffd}'), "{full:?} {examined:?}");
    // It measures nothing, and waits for nothing.
    assert!(ask(&["bench"]).complaint(69).contains("raise maxmemory"));
    assert!(ask(&["show", LOCK]).well().contains("is free"));
    ask(&["ls"]).well();
    let tried = ask(&["run", "--try", LOCK, "--", "true"]);
    assert!(tried.complaint(69).contains("raise maxmemory"), "{tried:?}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    health(&server.url()).well();
}
