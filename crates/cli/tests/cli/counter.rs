//! Two hundred runs of a script that counts, while runs are stopped and killed at random: behind a
//! fence check no increment is lost, and without it some are.
//!
//! The script reads two counters, and writes them anew. The storage of the first compares fences, that
//! of the second does not: the control.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use leasehold::{
    Stamp,
    fencing::MemoryGate,
    store::unstable::{Entropy, SystemEntropy},
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Patience, RedisServer};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    run::is_gone,
    support::{LIMIT, Running, leasehold},
};

const RUNS: usize = 200;
const TTL: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(300);
const SOCKET: &str = "LEASEHOLD_TEST_SOCKET";

/// What the storage has.
#[derive(Debug, Default)]
struct Storage {
    fenced: Counter,
    control: Counter,
    gate: MemoryGate,
    /// The processes of the script, in the order in which they came.
    scripts: Vec<i32>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counter {
    value: u64,
    writes: u64,
}

impl Counter {
    /// Each write is meant to add one.
    fn write(&mut self, value: u64) {
        self.value = value;
        self.writes += 1;
    }

    fn lost(self) -> u64 {
        self.writes - self.value
    }
}

impl Storage {
    /// Serves one line of a script: `read STAMP PID`, or `write STAMP FENCED CONTROL`.
    ///
    /// A read under a fence shuts earlier holders out, too: what they write later would be lost.
    fn serve(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [what, fence, lease, ref numbers @ ..] = words[..] else { panic!("{line}") };
        let stamp = Stamp::new(fence.parse().unwrap(), lease.parse().unwrap());
        let is_admitted = self.gate.write("counter", stamp, || ()).is_ok();
        match (what, numbers) {
            ("read", [pid]) => {
                self.scripts.push(pid.parse().unwrap());
                format!("{} {}\n", self.fenced.value, self.control.value)
            }
            ("write", [fenced, control]) => {
                self.control.write(control.parse().unwrap());
                if is_admitted {
                    self.fenced.write(fenced.parse().unwrap());
                }
                "written\n".into()
            }
            _ => panic!("{line}"),
        }
    }
}

/// Serves each connection on a thread of its own.
fn serve(listener: UnixListener, storage: Arc<Mutex<Storage>>) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, storage) = (stream.unwrap(), Arc::clone(&storage));
            thread::spawn(move || {
                let reader = BufReader::new(stream.try_clone().unwrap());
                for line in reader.lines().map_while(Result::ok) {
                    let answer = storage.lock().unwrap().serve(&line);
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// The script: counts once.
#[test]
fn child_program() {
    let Ok(socket) = env::var(SOCKET) else { return };
    let variable = |name| env::var(name).unwrap();
    let (fence, lease) = (variable("LEASEHOLD_FENCE"), variable("LEASEHOLD_LEASE"));
    let stream = UnixStream::connect(socket).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut ask = |question: String| {
        (&stream).write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        reader.read_line(&mut answer).unwrap();
        answer
    };
    let read = ask(format!("read {fence} {lease} {}\n", std::process::id()));
    let values: Vec<u64> = read.split_whitespace().map(|value| value.parse().unwrap()).collect();
    pause(Duration::from_millis(15));
    ask(format!("write {fence} {lease} {} {}\n", values[0] + 1, values[1] + 1));
}

/// Waits; there is nothing to ask.
fn pause(time: Duration) {
    let until = SystemClock.now() + time;
    Patience::of(LIMIT).until(|| (SystemClock.now() >= until).then_some(()));
}

#[test]
fn no_increment_is_lost_behind_a_fence_check_and_some_are_without() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("storage");
    let storage = Arc::new(Mutex::new(Storage::default()));
    serve(UnixListener::bind(&socket).unwrap(), Arc::clone(&storage));
    let mut runs: Vec<_> = (0..RUNS).map(|_| counting(&server, &socket)).collect();
    let mut seen = 0;
    // Of the scripts that begin, some meet with an accident, until all runs have ended.
    while let Some(number) = next_script(&storage, &mut seen, &mut runs) {
        if number % 10 == 3 {
            accident(storage.lock().unwrap().scripts[number]);
        }
    }
    for pid in &storage.lock().unwrap().scripts {
        let gone = Patience::of(LIMIT).until(|| is_gone(&pid.to_string()).then_some(()));
        assert!(gone.is_some(), "script {pid} outlives its run");
    }
    let storage = storage.lock().unwrap();
    println!(
        "{} scripts began; {} fenced writes, {} without; lost {} and {}",
        storage.scripts.len(),
        storage.fenced.writes,
        storage.control.writes,
        storage.fenced.lost(),
        storage.control.lost()
    );
    assert!(storage.fenced.writes >= RUNS as u64 * 3 / 4, "{:?}", storage.fenced);
    assert_eq!(storage.fenced.lost(), 0, "{:?}", storage.fenced);
    assert!(storage.control.lost() > 0, "the control shows no damage: {:?}", storage.control);
}

fn counting(server: &RedisServer, socket: &Path) -> Running {
    let program = env::current_exe().unwrap();
    let (ttl, grace) = (format!("{}ms", TTL.as_millis()), format!("{}ms", GRACE.as_millis()));
    let options = ["run", "--wait-forever", "--ttl", &ttl, "--grace", &grace, "counter", "--"];
    let mut command = leasehold(options);
    command.arg(program).args(["counter::child_program", "--exact"]);
    Running::start(command.env("REDIS_URL", server.url()).env(SOCKET, socket))
}

/// Waits for the next script that begins; `None` when all runs have ended.
fn next_script(
    storage: &Mutex<Storage>,
    seen: &mut usize,
    runs: &mut Vec<Running>,
) -> Option<usize> {
    let next = Patience::of(2 * LIMIT).until(|| {
        let count = storage.lock().unwrap().scripts.len();
        if count > *seen {
            return Some(true);
        }
        runs.retain_mut(|run| !run.has_ended());
        runs.is_empty().then_some(false)
    });
    assert!(next.is_some(), "{} runs do not end", runs.len());
    *seen += 1;
    next.filter(|begun| *begun).map(|_| *seen - 1)
}

/// Kills the run of a script, or stops it, or stops it with its guard and the script, as a pause of
/// the whole machine would.
fn accident(script: i32) {
    let Some(run) = parent(script) else { return };
    let signal = |pid: i32, signal| {
        // It may have ended.
        let _ = kill(Pid::from_raw(pid), signal);
    };
    match SystemEntropy.bits() % 4 {
        0 => signal(run, Signal::SIGKILL),
        1 => {
            signal(run, Signal::SIGSTOP);
            pause(TTL);
            signal(run, Signal::SIGCONT);
        }
        _ => {
            let helpers = children(run);
            for pid in helpers.iter().copied().chain([run]) {
                signal(pid, Signal::SIGSTOP);
            }
            pause(TTL * 2);
            // The script first: it does not know that its lease is over.
            signal(script, Signal::SIGCONT);
            pause(Duration::from_millis(50));
            for pid in helpers.into_iter().chain([run]) {
                signal(pid, Signal::SIGCONT);
            }
        }
    }
}

/// The run of a script: its parent.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
    // One that was killed has given its children away.
    let name = fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    (name.trim() == "leasehold").then_some(parent)
}

fn children(pid: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}
