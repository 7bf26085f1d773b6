use std::{panic, panic::AssertUnwindSafe, path::Path, process::Command, time::Duration};

use leasehold_testkit::ChildProcess;

const LIMIT: Duration = Duration::from_secs(10);

fn shell(script: &str) -> ChildProcess {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    ChildProcess::spawn(command)
}

#[test]
fn lines_are_waited_for_by_their_prefix() {
    let mut child = shell("echo begin; echo 'fence 42'; echo after; exit 3");
    assert_eq!(child.wait_for_line("fence ", LIMIT), "42");
    assert_eq!(child.seen(), ["begin", "fence 42"]);
    assert_eq!(child.wait_for_line("after", LIMIT), "");
    assert_eq!(child.wait_for_exit(LIMIT).and_then(|status| status.code()), Some(3));
    // What has ended takes no harm.
    child.cont();
    child.kill();
}

#[test]
fn a_wait_is_bounded_and_shows_what_came_instead() {
    for (script, why) in [("echo other; exec sleep 60", "no line within"), ("echo other", "ended")]
    {
        let mut child = shell(script);
        let wait = || child.wait_for_line("fence", Duration::from_millis(300));
        let panic = panic::catch_unwind(AssertUnwindSafe(wait)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains(why) && message.contains("other"), "{message}");
    }
}

#[test]
fn a_stopped_child_stands_still_until_it_goes_on() {
    let mut child = shell("while :; do echo tick; sleep 0.01; done");
    child.wait_for_line("tick", LIMIT);
    child.stop();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    assert!(stat.contains(") T "), "{stat}");
    child.cont();
    child.wait_for_line("tick", LIMIT);
}

#[test]
fn a_dropped_child_is_killed() {
    let child = shell("exec sleep 60");
    let entry = format!("/proc/{}", child.id());
    assert!(Path::new(&entry).exists());
    drop(child);
    assert!(!Path::new(&entry).exists());
}
