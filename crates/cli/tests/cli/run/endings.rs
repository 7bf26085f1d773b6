//! What the command learns, and what its end says.

use leasehold_testkit::RedisServer;

use crate::support::{LOCK, finished, leasehold, value};

#[test]
fn the_command_learns_of_its_lease_and_the_lock_is_free_after_it() {
    let server = RedisServer::start();
    let script = "printf '%s %s %s' $LEASEHOLD_LOCK $LEASEHOLD_FENCE $LEASEHOLD_LEASE";
    let run = |url: &str| {
        finished(leasehold(["run", LOCK, "--", "sh", "-c", script]).env("REDIS_URL", url)).well()
    };
    let (first, second) = (run(&server.url()), run(&server.url()));
    let fence = |told: &str| {
        let words: Vec<_> = told.split(' ').map(str::to_owned).collect();
        let [name, fence, lease] = &words[..] else { panic!("{told}") };
        assert_eq!(name, LOCK);
        assert!(lease.ends_with(":1"), "{lease}");
        fence.parse::<u64>().unwrap()
    };
    assert!(fence(&second) > fence(&first));
    let free = value(&server, LOCK);
    assert_eq!(free["state"], "free");
    assert!(free["last_fence"].as_u64().unwrap() >= fence(&second), "{free}");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let server = RedisServer::start();
    let run = |script: &str| {
        finished(leasehold(["run", LOCK, "--", "sh", "-c", script]).env("REDIS_URL", server.url()))
    };
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 75", 75), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        let ended = run(script);
        assert_eq!((ended.code, &*ended.err), (code, ""), "{script}");
    }
    let missing =
        finished(leasehold(["run", LOCK, "--", "no-such-program"]).env("REDIS_URL", server.url()));
    assert!(missing.complaint(127).contains("cannot run no-such-program"));
    let folder = finished(leasehold(["run", LOCK, "--", "/"]).env("REDIS_URL", server.url()));
    assert!(folder.complaint(126).contains("cannot run /"));
    assert_eq!(value(&server, LOCK)["state"], "free");
}

/// The script is there: it is the program of its first line that is missing.
#[test]
fn a_missing_interpreter_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let script = folder.path().join("script");
    for (first, says) in [
        ("#!/no/such/interpreter -x\n", "its interpreter /no/such/interpreter is missing"),
        // As an editor on Windows writes it.
        ("#!/bin/sh\r\n", "its first line ends with a carriage return"),
    ] {
        std::fs::write(&script, format!("{first}echo run\n")).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let words = ["run", LOCK, "--", script.to_str().unwrap()];
        let ended = finished(leasehold(words).env("REDIS_URL", server.url()));
        let text = ended.complaint(127);
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn input_and_output_are_those_of_the_command() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    std::fs::write(&input, "hello\n").unwrap();
    let mut command = leasehold(["run", LOCK, "--", "sh", "-c", "cat; echo oops >&2"]);
    command.env("REDIS_URL", server.url()).stdin(std::fs::File::open(input).unwrap());
    let ended = finished(&mut command);
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, "hello\n", "oops\n"));
}

#[test]
fn a_taken_lock_is_told_with_its_holder() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let mut holder = leasehold(["run", LOCK, "--", "sh", "-c", &script]);
    let _holder = crate::support::Running::begun(holder.env("REDIS_URL", server.url()), &file);
    let run = |words: &[&str]| {
        finished(
            leasehold([&["run"], words, &[LOCK, "--", "true"]].concat())
                .env("REDIS_URL", server.url()),
        )
    };
    let tried = run(&["--try"]);
    let text = tried.complaint(75);
    assert!(
        text.contains(LOCK) && text.contains("/sh has held it") && text.contains("--wait"),
        "{text}"
    );
    let waited = run(&["--wait", "300ms"]);
    let text = waited.complaint(75);
    assert!(text.contains("not free within 3") && text.contains("/sh (lease"), "{text}");
    assert_eq!(run(&["--try", "-E", "7"]).code, 7);
    assert_eq!(run(&["--try", "--exit-code=busy=8"]).code, 8);
    assert_eq!(run(&["--try", "-E", "lost=9"]).code, 75);
}

#[test]
fn a_minimum_keeps_the_lock_closed_behind_the_command() {
    let server = RedisServer::start();
    finished(
        leasehold(["run", "--min-hold", "1h", LOCK, "--", "true"]).env("REDIS_URL", server.url()),
    )
    .well();
    let kept = value(&server, LOCK);
    assert_eq!(kept["state"], "kept");
    assert!(kept["holder"]["ttl_left_ms"].as_u64().unwrap() > 3_000_000, "{kept}");
    // Nobody holds it, and it opens by itself.
    let tried =
        finished(leasehold(["run", "--try", LOCK, "--", "true"]).env("REDIS_URL", server.url()));
    let text = tried.complaint(75);
    assert!(text.contains("is kept closed for another 59m") && text.contains("/true"), "{text}");
    assert!(!text.contains("has held it"), "{text}");
}

/// A lock for each job: its key need not stay for a week.
#[test]
fn the_fence_stays_for_as_long_as_is_asked_for() {
    const HOUR: u64 = 3600;
    let server = RedisServer::start();
    let run = |options: &[&str], name: &str| {
        let words = [&["run"], options, &[name, "--", "true"]].concat();
        finished(leasehold(words).env("REDIS_URL", server.url()))
    };
    let rest =
        |name: &str| -> u64 { server.query(&["TTL", &format!("leasehold:{{{name}}}:lease")]) };
    run(&["--retention", "1h"], "short").well();
    assert!((HOUR - 60..=HOUR * 9 / 8).contains(&rest("short")), "{}", rest("short"));
    run(&[], "usual").well();
    run(&["--retention", "1h"], "usual").well();
    assert!(rest("usual") > 6 * 24 * HOUR, "a key that is there is not shortened");
    assert!(run(&["--retention", "59m"], "short").complaint(64).contains("retention"));
}
