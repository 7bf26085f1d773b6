//! Output that nobody reads, and output that cannot be written.

use std::{
    fs::File,
    io,
    process::{Command, Stdio},
};

use leasehold_testkit::RedisServer;

use crate::support::{LOCK, finished, leasehold};

/// A disk without room.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    io::pipe().unwrap().1.into()
}

fn of(server: &RedisServer, words: &[&str]) -> Command {
    let mut command = leasehold(words);
    command.env("REDIS_URL", server.url());
    command
}

const WRITERS: [&[&str]; 10] = [
    &["--help"],
    &["run", "--help"],
    &["--version"],
    &["man"],
    &["completions", "bash"],
    &["ls"],
    &["ls", "--json"],
    &["show", LOCK],
    &["show", LOCK, "--json"],
    &["release", LOCK, "--yes", "--json"],
];

#[test]
fn a_full_disk_is_told() {
    let server = RedisServer::start();
    for words in WRITERS {
        // So that there is something to list, and to release.
        finished(&mut of(
            &server,
            &["run", "--min-hold", "1h", "--try", "-E", "0", LOCK, "--", "true"],
        ));
        let ended = finished(of(&server, words).stdout(full()));
        let text = ended.complaint(74);
        assert!(text.contains("No space left"), "{words:?}: {text}");
    }
}

#[test]
fn a_reader_that_goes_away_early_is_no_failure() {
    let server = RedisServer::start();
    finished(&mut of(&server, &["run", "--min-hold", "1h", LOCK, "--", "true"])).well();
    for words in WRITERS {
        let ended = finished(of(&server, words).stdout(closed()));
        assert_eq!((ended.code, &*ended.err), (0, ""), "{words:?}");
    }
}

/// The exit code tells it nevertheless.
#[test]
fn a_complaint_that_cannot_be_written_keeps_its_exit_code() {
    let server = RedisServer::start();
    for (words, code) in [
        (&["ls", "--bad"][..], 64),
        (&["--url", "redis://127.0.0.1:1", "ls"], 69),
        (&["run", LOCK, "--", "no-such-program"], 127),
        (&["release", LOCK, "--yes"], 0),
    ] {
        for err in [full(), closed()] {
            let ended = finished(of(&server, words).stderr(err));
            assert_eq!(ended.code, code, "{words:?}");
        }
    }
}
