//! A run in a container: as its first process, and without /proc.

use std::process::{Command, Stdio};

use leasehold_testkit::RedisServer;
use nix::unistd::geteuid;

use crate::support::{Finished, LOCK, finished};

/// A run that is process 1, as in a container.
fn first(server: &RedisServer, script: &str) -> Finished {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_leasehold")]);
    unshare.args(["run", LOCK, "--", "sh", "-c", script]).env("REDIS_URL", server.url());
    finished(unshare.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// How many processes have ended and were not reaped.
const ZOMBIES: &str = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '";

#[test]
fn the_first_process_of_a_container_reaps_what_it_inherits() {
    if !geteuid().is_root() {
        println!("only root can make such a container");
        return;
    }
    let server = RedisServer::start();
    let orphans =
        "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sleep 0.05 & ); done";
    let script = format!(
        "{orphans}; sleep 0.3; n=0; while z=$({ZOMBIES}); [ $z -gt 0 ] && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.05; done; \
         echo $z; exit 3"
    );
    let ended = first(&server, &script);
    assert_eq!((ended.code, &*ended.err), (3, ""));
    assert_eq!(ended.out, "0\n", "zombies");
}

/// As in a chroot that nobody has mounted it in.
#[test]
fn without_proc_the_missing_file_is_named() {
    if !geteuid().is_root() {
        println!("only root can take /proc away");
        return;
    }
    let server = RedisServer::start();
    let mut unshare = Command::new("unshare");
    let script = "mount -t tmpfs none /proc && exec \"$0\" run \"$1\" -- true";
    unshare.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_leasehold"), LOCK]);
    unshare.env("REDIS_URL", server.url()).stdin(Stdio::null());
    let ended = finished(unshare.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let text = ended.complaint(78);
    assert!(text.contains("/proc/self/exe") && text.contains("mount -t proc"), "{text}");
}
