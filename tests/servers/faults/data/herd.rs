use leasehold_testkit::{ChildProcess, Event, History, RedisServer};

use super::herd_child::{CHILD, GO, NAIVE, ROLE, VALUE};
use crate::support::{child, events, matrix::row, wait};

row! {
    herd: protected, control;
    fault: "200 tasks in each of 3 processes wait for one lock",
    right: "a hand-over wakes one process and costs few commands; tasks are served in order",
    control: "a lock that sends each message to all, 40 tasks in each of 3 processes",
}

const PROCESSES: usize = 3;
const TASKS: usize = 200;
const NAIVE_TASKS: usize = 40;
/// Commands for each lease, at most; what it costs to queue is among them.
const COMMANDS: u64 = 2;

/// What a herd cost the server.
struct Herd {
    history: History,
    messages: u64,
    commands: u64,
}

/// Lets a herd wait until all do, and then one after the other have the lock.
fn run(role: &str, tasks: usize, command: &str) -> Herd {
    let server = RedisServer::start();
    let (url, number) = (server.url(), tasks.to_string());
    let spawn = |index: usize| {
        let index = index.to_string();
        child::spawn(CHILD, role, &[("url", &url), ("index", &index), ("tasks", &number)])
    };
    let mut children: Vec<ChildProcess> = Vec::new();
    for index in 0..PROCESSES {
        let mut child = spawn(index);
        // The first has the lock before the others come.
        child.wait_for_line("ready", wait::CEILING);
        children.push(child);
    }
    for child in &mut children {
        child.wait_for_line("waiting", wait::CEILING);
    }
    let counted = |command| server.calls(command);
    let (messages, commands) = (counted("publish"), counted(command));
    server.command(&["SET", GO, "1"]);
    for child in &mut children {
        child.wait_for_line("done", wait::CEILING);
    }
    let (messages, commands) = (counted("publish") - messages, counted(command) - commands);
    let value = server.query(&["GET", VALUE]);
    let told = children.iter().flat_map(|child| events::read(child.seen()));
    let history = told.chain([Event::CounterRead { value }]).collect();
    assert_eq!(value, (PROCESSES * tasks) as u64, "every task wrote once, one after the other");
    Herd { history, messages, commands }
}

fn protected() -> String {
    let Herd { history, messages, commands } = run(ROLE, TASKS, "evalsha");
    let summary = history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    let leases = PROCESSES * TASKS;
    assert_eq!((summary.leases, summary.lost), (leases, 0), "{summary:?}");
    let turns = turns(&history);
    in_turn(&turns);
    // One message to one process for each change of process, at most.
    assert!(messages <= turns.len() as u64, "{messages} messages, {} turns", turns.len());
    assert!(commands <= COMMANDS * leases as u64, "{commands} commands for {leases} leases");
    format!("{leases} leases, {} turns, {messages} messages, {commands} commands", turns.len())
}

fn control() -> String {
    let Herd { messages, commands, .. } = run(NAIVE, NAIVE_TASKS, "set");
    let leases = (PROCESSES * NAIVE_TASKS) as u64;
    assert!(commands > 4 * COMMANDS * leases, "{commands} commands for {leases} leases");
    format!("{leases} leases, {messages} messages to all, {commands} commands")
}

/// The processes, in the order in which they had the lock, and how many tasks each time.
fn turns(history: &History) -> Vec<(u64, usize)> {
    let mut grants: Vec<_> = history
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Granted { fence, worker, .. } => Some((fence, worker)),
            _ => None,
        })
        .collect();
    grants.sort_unstable();
    let mut last = [None; PROCESSES];
    let mut turns: Vec<(u64, usize)> = Vec::new();
    for (_, worker) in grants {
        let (process, task) = (worker / TASKS as u64, worker % TASKS as u64);
        let before = last[usize::try_from(process).expect("an index")].replace(task);
        assert!(before < Some(task), "task {task} of {process} after {before:?}");
        match turns.last_mut() {
            Some((same, tasks)) if *same == process => *tasks += 1,
            _ => turns.push((process, 1)),
        }
    }
    turns
}

/// Nobody is passed over by more than one turn of another, from its first turn to its last.
fn in_turn(turns: &[(u64, usize)]) {
    for process in 0..PROCESSES as u64 {
        let own: Vec<usize> = (0..turns.len()).filter(|at| turns[*at].0 == process).collect();
        for pair in own.windows(2) {
            let between = &turns[pair[0] + 1..pair[1]];
            assert!(between.len() < PROCESSES, "{process} waits for {between:?}");
        }
    }
}
