//! A run in a terminal behaves like its command.

use leasehold_testkit::RedisServer;

use crate::support::{LOCK, Terminal, value};

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

/// An interactive shell.
fn shell(server: &RedisServer) -> Terminal {
    let shell = Terminal::start(&["sh", "-i"], [("REDIS_URL", server.url())]);
    shell.shows("$ ");
    shell
}

/// The shell reads in the command itself: a shell that starts another program may be stopped between
/// both.
fn begin(shell: &mut Terminal, tail: &str) {
    shell.keys(&format!(
        "{PROGRAM} run {LOCK} -- sh -c 'echo re\"\"ady; read x; echo got-$x'{tail}\n"
    ));
    shell.shows("ready");
}

#[test]
fn the_command_reads_from_the_terminal() {
    let server = RedisServer::start();
    let mut shell = shell(&server);
    begin(&mut shell, "; echo code-$?");
    shell.keys("hello\n");
    shell.shows("got-hello");
    shell.shows("code-0");
    // The terminal is the shell's again.
    shell.keys("echo al\"\"ive\n");
    shell.shows("alive");
}

#[test]
fn the_keys_stop_the_job_and_fg_goes_on() {
    let server = RedisServer::start();
    let mut shell = shell(&server);
    begin(&mut shell, "");
    shell.keys("\x1a");
    shell.wait_for("a stopped job", |screen| {
        screen.contains("Stopped") || screen.contains("Suspended")
    });
    assert_eq!(value(&server, LOCK)["state"], "held");
    shell.keys("fg\n");
    shell.wait_for("the job again", |screen| {
        screen.rsplit("fg\n").next().is_some_and(|last| last.contains(PROGRAM_NAME))
    });
    shell.keys("hello\n");
    shell.shows("got-hello");
}

const PROGRAM_NAME: &str = "leasehold";

/// The guard has told the command to end, which says that it did well.
#[test]
fn a_job_that_was_stopped_for_too_long_is_no_success() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("job");
    // A shell that starts other programs may be stopped between both.
    let script = "trap 'echo half-done; exit 0' TERM; sleep 100 & echo ready; wait";
    std::fs::write(&job, script).unwrap();
    let mut shell = shell(&server);
    let options = "--once 1h --ttl 6s --grace 2900ms";
    shell.keys(&format!("{PROGRAM} run {options} {LOCK} -- sh {}\n", job.display()));
    shell.shows("ready");
    shell.keys("\x1a");
    shell.shows("half-done");
    shell.keys("fg; echo code-$?\n");
    shell.shows("code-76");
    assert_eq!(value(&server, LOCK)["state"], "free", "the work is not done");
}

#[test]
fn the_key_that_interrupts_ends_the_command_and_the_script_around_it() {
    let server = RedisServer::start();
    let mut shell = shell(&server);
    begin(&mut shell, "; echo code-$?");
    shell.keys("\x03");
    shell.shows("code-130");
    shell.keys(&format!(
        "sh -c '{PROGRAM} run {LOCK} -- sh -c \"echo re-\\$((1+1)); read x\"; echo not-$((1+1))'\n"
    ));
    shell.shows("re-2");
    shell.keys("\x03");
    // Keys that come sooner are read by the command that is ending.
    shell.wait_for("the prompt", |screen| screen.trim_end().ends_with('$'));
    shell.keys("echo end-$((1+1))\n");
    let screen = shell.shows("end-2");
    assert!(!screen.contains("not-2"), "{screen}");
}

/// A script without job control reads after the run: the terminal was given back.
#[test]
fn the_terminal_is_given_back_to_a_script() {
    let server = RedisServer::start();
    let mut shell = shell(&server);
    shell.keys(&format!(
        "sh -c '{PROGRAM} run {LOCK} -- true; echo re\"\"ady; read y; echo read-$y'\n"
    ));
    shell.shows("ready");
    shell.keys("there\n");
    shell.shows("read-there");
}

/// In the background it does not take the terminal away.
#[test]
fn in_the_background_the_terminal_is_left_alone() {
    let server = RedisServer::start();
    let mut shell = shell(&server);
    shell.keys(&format!(
        "{PROGRAM} run {LOCK} -- sh -c 'echo ba\"\"ck; sleep 0.2; echo en\"\"d' & \n"
    ));
    shell.shows("back");
    shell.keys("echo al\"\"ive\n");
    shell.shows("alive");
    shell.shows("end");
}
