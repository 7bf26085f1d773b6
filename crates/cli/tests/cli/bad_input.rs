//! Bad input of each kind gives one line that says what to do, and nothing is run.

use leasehold_testkit::RedisServer;

use crate::support::{Finished, LOCK, finished, leasehold};

fn with_url(url: Option<&str>, words: &[&str]) -> Finished {
    finished(leasehold(words).envs(url.map(|url| ("REDIS_URL", url))))
}

#[test]
fn arguments_that_are_not_understood_are_named() {
    let long = "x".repeat(600);
    for (words, says) in [
        (&[][..], "leasehold run NAME -- COMMAND"),
        (&["run"], "behind --"),
        (&["run", LOCK], "behind --"),
        (&["run", LOCK, "true"], "behind --"),
        (&["run", LOCK, "--"], "behind --"),
        (&["run", "--foo", LOCK, "--", "true"], "--foo"),
        (&["fly"], "fly"),
        (&["run", "-x", "--", "true"], "found; run takes no lock whose name begins with -; see"),
        (&["show", "-x"], "found; tip: to pass '-x'"),
        (&["--tls-cert", "x", "ls"], "--tls-key"),
        (&["run", "--wait", "366d", LOCK, "--", "true"], "--wait-forever"),
        (
            &["run", "--ttl", "99999999999999999999s", LOCK, "--", "true"],
            "'--ttl <TIME>': the time is too long",
        ),
        (&["run", "--wait", "1000000000000d", LOCK, "--", "true"], "the time is too long"),
        (&["run", "--ttl", "-5s", LOCK, "--", "true"], "a time cannot be negative"),
        (&["run", "--grace=-5s", LOCK, "--", "true"], "a time cannot be negative"),
        (&["run", "--ttl", "-x", LOCK, "--", "true"], "-x"),
        (&["show"], "<NAME>"),
        (&["run", "--wait", "30", LOCK, "--", "true"], "30s"),
        (&["run", "--ttl", "5", LOCK, "--", "true"], "see leasehold run --help"),
        (&["run", "--wait", "1y", LOCK, "--", "true"], "1h30m"),
        (&["run", "--wait", "1s", "--try", LOCK, "--", "true"], "--try"),
        (&["run", "--once", "1h", "--try", LOCK, "--", "true"], "--once"),
        (&["run", "-E", "300", LOCK, "--", "true"], "0 to 255"),
        (&["run", "-E", "x=3", LOCK, "--", "true"], "unreachable"),
        (&["completions", "fish-and-chips"], "bash"),
        (&["run", "", "--", "true"], "empty"),
        (&["run", "}a", "--", "true"], "}a"),
        (&["run", &long, "--", "true"], "512"),
        (&["run", "--once", "1h", "a", "b", "--", "true"], "--once"),
        (&["run", "--ttl", "0s", LOCK, "--", "true"], "'0s' for '--ttl <TIME>': choose"),
        (&["run", "--ttl", "25h", LOCK, "--", "true"], "between 100ms and 24h"),
        (
            &["run", "--retention", "0m", LOCK, "--", "true"],
            "'0m' for '--retention <TIME>': choose",
        ),
        (&["run", "--retention", "3651d", LOCK, "--", "true"], "between 1h and 3650d"),
        (&["run", "--namespace", "a b", LOCK, "--", "true"], "namespace"),
    ] {
        let server_is_not_asked = Some("redis://127.0.0.1:1");
        let ended = with_url(server_is_not_asked, words);
        assert_eq!(ended.code, 64, "{words:?}: {ended:?}");
        let text = ended.complaint(64);
        assert!(text.contains(says), "{words:?}: {text}");
    }
}

#[test]
fn values_that_the_library_refuses_are_named() {
    let server = RedisServer::start();
    for (words, says) in [
        (&["run", "--min-hold", "25h", LOCK, "--", "touch", "/never"][..], "--min-hold"),
        (&["run", "--once", "25h", LOCK, "--", "touch", "/never"], "give --once less"),
        (&["ls", ""], "pattern"),
        (&["show", ""], "empty"),
        (&["release", "", "--yes"], "empty"),
    ] {
        let ended = with_url(Some(&server.url()), words);
        let text = ended.complaint(64);
        assert!(text.contains(says), "{words:?}: {text}");
    }
}

#[test]
fn the_code_of_a_bad_use_can_be_set() {
    assert_eq!(with_url(None, &["run", "-E", "usage=2", "--foo", LOCK, "--", "true"]).code, 2);
    assert_eq!(with_url(None, &["run", "-E", "usage=2", LOCK, "--", "true"]).code, 2);
}

#[test]
fn without_an_address_the_program_says_what_to_write() {
    for url in [None, Some(""), Some("  ")] {
        for words in [
            &["run", LOCK, "--", "true"][..],
            &["ls"],
            &["show", LOCK],
            &["doctor"],
            &["release", LOCK],
            &["bench"],
        ] {
            let ended = with_url(url, words);
            let text = ended.complaint(64);
            assert!(text.contains("REDIS_URL") && text.contains("--url redis://"), "{text}");
        }
    }
    let bad = with_url(Some("http://bob:hush@h"), &["ls"]);
    let text = bad.complaint(64);
    assert!(
        text.contains("REDIS_URL") && text.contains("redis://") && !text.contains("hush"),
        "{text}"
    );
}

#[test]
fn a_server_that_is_not_there_is_named_without_the_password() {
    let url = Some("redis://bob:hush@127.0.0.1:1");
    for words in [
        &["run", LOCK, "--", "true"][..],
        &["ls"],
        &["show", LOCK],
        &["release", LOCK, "--yes"],
        &["bench"],
    ] {
        let ended = with_url(url, words);
        let text = ended.complaint(69);
        assert!(text.contains("redis://127.0.0.1:1") && text.contains("--url"), "{text}");
        assert!(!text.contains("hush"), "{text}");
    }
    assert_eq!(with_url(url, &["run", "-E", "unreachable=3", LOCK, "--", "true"]).code, 3);
}
