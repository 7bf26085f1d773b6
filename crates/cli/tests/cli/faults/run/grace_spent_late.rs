use std::path::Path;

use leasehold_testkit::{FaultProxy, RedisServer, proxy::Direction};

use crate::{
    faults::matrix::row,
    support::{Finished, LOCK, Running, finished, leasehold},
};

row! {
    grace_spent_late: protected, control;
    fault: "a run is cut off from its server, and its command needs a while to end; another run waits",
    right: "SIGTERM comes so early that the command has ended when its lease does: never two commands",
    control: "a grace that begins when the lease has ended (--grace-after)",
}

fn protected() -> String {
    assert!(!are_two(&[]), "two commands at once");
    "the first command had ended before the second one began".into()
}

fn control() -> String {
    assert!(are_two(&["--grace-after"]), "the control shows no damage");
    "the second command began while the first one ran".into()
}

/// Whether a command that takes its time to end sees another one begin.
fn are_two(options: &[&str]) -> bool {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let folder = tempfile::tempdir().unwrap();
    let (begun, second) = (folder.path().join("begun"), folder.path().join("second"));
    let first = first(&begun, &second);
    let words =
        [&["run", "--ttl", "16s", "--grace", "7s"], options, &[LOCK, "--", "sh", "-c"]].concat();
    let mut command = leasehold(words);
    let running = Running::begun(command.arg(first).env("REDIS_URL", proxy.url()), &begun);
    proxy.black_hole(Direction::Both);
    let other = other(&server, &second);
    let ended = running.end();
    assert!(ended.last_complaint(76).contains("lost"));
    other.well();
    assert!(ended.out.contains("saw"), "it had the time to end: {ended:?}");
    ended.out.contains("saw another")
}

/// When it is told to end, it looks for the other one for up to four seconds.
fn first(begun: &Path, second: &Path) -> String {
    let look = format!(
        "n=0; while [ $n -lt 80 ]; do [ -e {} ] && echo saw another && exit; n=$((n+1)); sleep 0.05; \
         done; echo saw nobody; exit",
        second.display()
    );
    format!("trap '{look}' TERM; touch {}; while :; do sleep 0.02; done", begun.display())
}

fn other(server: &RedisServer, second: &Path) -> Finished {
    let script = format!("touch {}", second.display());
    let words = ["run", "--wait-forever", LOCK, "--", "sh", "-c", &script];
    finished(leasehold(words).env("REDIS_URL", server.url()))
}
