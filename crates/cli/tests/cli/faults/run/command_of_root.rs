use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use leasehold_testkit::{FaultProxy, RedisServer};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, geteuid},
};

use crate::{
    faults::matrix::Row,
    run::is_gone,
    support::{LOCK, Running, finished, leasehold, settled, value},
};

const ROW: Row = Row {
    id: "command-of-root",
    fault: "an ordinary user runs a command as root, as by sudo, which ignores SIGTERM; its lease is ended",
    right: "the run says that the command runs on, with its process and its user, and exits with 77",
    control: "a supervisor that does not look at what kill answers",
};

/// An account without rights.
const NOBODY: u32 = 65534;

#[test]
fn command_of_root() {
    if !geteuid().is_root() {
        println!("only root can make a program that makes others root");
        return;
    }
    ROW.run(protected, control);
}

fn protected() -> String {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let scene = Root::new();
    let (running, pid) = begun_by_nobody(&scene, &proxy.url(), &["--grace", "200ms"], STUBBORN);
    finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url())).well();
    // Another one has the lock at once.
    finished(leasehold(["run", LOCK, "--", "true"]).env("REDIS_URL", server.url())).well();
    let ended = running.end();
    let text = ended.last_complaint(77);
    assert!(text.contains(&format!("process {pid} of user root")), "{text}");
    assert!(text.contains("could not be ended"), "{text}");
    assert!(!is_gone(&pid), "this is what the run cannot help");
    end(&pid);
    "exit 77, with the process and its user, while another run had the lock".into()
}

/// An outage ends after the grace has begun, and before the lease would have: nobody could end the command,
/// and it has kept its lock to the end.
#[test]
#[expect(clippy::disallowed_methods, reason = "an outage of a real server takes real time")]
fn a_command_of_root_whose_lease_was_renewed_after_all_ends_by_itself() {
    /// The grace begins 15.5 s after the last renewal. That was up to 10 s before the outage, so the lease
    /// lasts for 20 s of it.
    const OUTAGE: Duration = Duration::from_secs(17);
    if !geteuid().is_root() {
        println!("only root can make a program that makes others root");
        return;
    }
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let scene = Root::new();
    let (may_end, text) =
        (scene.folder.path().join("end"), "until [ -e END ]; do sleep 0.02; done");
    let text = format!("trap \"\" TERM; {}", text.replace("END", &may_end.display().to_string()));
    let options = ["--ttl", "30s", "--grace", "14500ms"];
    let (running, _) = begun_by_nobody(&scene, &proxy.url(), &options, &text);
    proxy.refuse();
    proxy.reset_all();
    std::thread::sleep(OUTAGE);
    proxy.accept();
    let held =
        || value(&server, LOCK)["holder"]["ttl_left_ms"].as_u64().is_some_and(|left| left > 20_000);
    settled(|| held().then_some(()));
    fs::write(&may_end, "").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.err.contains("was ended"), "{ended:?}");
}

fn control() -> String {
    let scene = Root::new();
    let file = scene.folder.path().join("pid");
    let naive = format!(
        "{} {STUBBORN_IN} & p=$!; while [ ! -e {1} ]; do sleep 0.02; done; kill -TERM $p 2>/dev/null; sleep 0.2; \
         kill -KILL $p 2>/dev/null; echo the command was ended; exit 76",
        scene.words(),
        file.display(),
        STUBBORN_IN = format_args!("sh -c '{}'", script(STUBBORN, &file)),
    );
    let mut shell = Command::new("sh");
    // Its output is not that of the command, which goes on with it.
    shell.args(["-c", &naive]).uid(NOBODY).gid(NOBODY).stderr(Stdio::null());
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    assert_eq!(Running::start(&mut shell).end().code, 76);
    let pid = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert!(!is_gone(&pid), "the control shows no damage");
    end(&pid);
    "it says that the command was ended, with 76, while root's process runs on".into()
}

const STUBBORN: &str = "trap \"\" TERM; while :; do sleep 0.02; done";

/// A program that makes its caller root, as `sudo` does.
struct Root {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Root {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let program = folder.path().join("as-root");
        copied("/usr/bin/setpriv", &program);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        Self { folder, program }
    }

    fn words(&self) -> String {
        format!("{} --reuid=0 --regid=0 --clear-groups", self.program.display())
    }
}

/// Copies a program.
fn copied(from: &str, to: &Path) {
    // Not by this process: a child that another test forks meanwhile would have the copy open for writing
    // until its own program starts, and Linux starts no program that is open for writing.
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "{from} is copied");
}

/// Ends a process.
fn end(pid: &str) {
    kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).unwrap();
    settled(|| is_gone(pid).then_some(()));
}

/// A script that first writes its process id. It goes on, and keeps nobody waiting for the end of its
/// output.
fn script(script: &str, file: &Path) -> String {
    format!("exec 2>/dev/null; echo $$ >{0}.new; mv {0}.new {0}; {script}", file.display())
}

/// A run of `nobody`, with a script of root that has begun, and its process id.
fn begun_by_nobody(scene: &Root, url: &str, options: &[&str], text: &str) -> (Running, String) {
    let file = scene.folder.path().join("pid");
    let program = scene.folder.path().join("leasehold");
    // The one that was built may lie where nobody else may go.
    if !program.exists() {
        copied(env!("CARGO_BIN_EXE_leasehold"), &program);
    }
    let root = scene.words();
    let root: Vec<_> = root.split(' ').collect();
    let text = script(text, &file);
    let words = [&["run"], options, &[LOCK, "--"], &root, &["sh", "-c", &text]].concat();
    let mut command = Command::new(program);
    command.args(words).uid(NOBODY).gid(NOBODY).env("REDIS_URL", url).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let running = Running::begun(&mut command, &file);
    let pid = fs::read_to_string(&file).unwrap().trim().to_owned();
    (running, pid)
}
