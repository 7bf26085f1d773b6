use std::time::Duration;

use leasehold_testkit::{ChildProcess, Event, History, Patience, RedisServer};

use super::{
    child, events, wait,
    worker::{CHILD, ENOUGH, ROLE, VALUE, flag},
};

/// How many seconds a process lives at most.
const LIFE: &str = "150";

/// Processes that increment one value under one lock, each with some tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) lock: Lock,
    /// The name of the lock.
    pub(crate) name: &'static str,
    /// Whether the storage looks at fences.
    pub(crate) gated: bool,
    pub(crate) processes: usize,
    /// Tasks of each process.
    pub(crate) tasks: usize,
    pub(crate) ttl: Duration,
    /// How many replicas have to acknowledge grants and renewals.
    pub(crate) replicas: u8,
    /// How long a section takes.
    pub(crate) hold: Duration,
}

/// Which lock they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    Leasehold,
    /// See `naive.rs`.
    Naive,
}

impl Plan {
    /// Three processes of two tasks with leases of a second, behind a gate.
    pub(crate) const PROTECTED: Self = Self {
        lock: Lock::Leasehold,
        name: "value",
        gated: true,
        processes: 3,
        tasks: 2,
        ttl: Duration::from_secs(1),
        replicas: 0,
        hold: Duration::from_millis(1),
    };

    /// The same with a storage that takes what comes.
    pub(crate) const UNGATED: Self = Self { gated: false, ..Self::PROTECTED };

    /// The same with a naive lock, behind a gate.
    pub(crate) const NAIVE: Self = Self { lock: Lock::Naive, ..Self::PROTECTED };

    /// The same with another lock.
    pub(crate) fn of(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The key of the lease.
    pub(crate) fn lease(&self) -> String {
        format!("leasehold:{{{}}}:lease", self.name)
    }
}

/// The processes of a plan at work, and the server of their storage.
#[derive(Debug)]
pub(crate) struct Crew {
    plan: Plan,
    storage: RedisServer,
    children: Vec<ChildProcess>,
}

impl Crew {
    /// Starts the processes, whose locks are on the server at `url`; each has connected.
    pub(crate) fn start(plan: &Plan, url: &str) -> Self {
        let mut crew = Self { plan: *plan, storage: RedisServer::start(), children: Vec::new() };
        crew.join(url, plan.processes);
        crew
    }

    /// Starts more processes, which know nothing of what the others have seen.
    pub(crate) fn join(&mut self, url: &str, processes: usize) {
        let first = self.children.len();
        for index in first..first + processes {
            let child = self.spawn(url, index);
            self.children.push(child);
        }
        for child in &mut self.children[first..] {
            child.wait_for_line("ready", wait::CEILING);
        }
    }

    fn spawn(&self, url: &str, index: usize) -> ChildProcess {
        let Plan { lock, name, gated, tasks, ttl, replicas, hold, .. } = self.plan;
        let lock = if lock == Lock::Leasehold { "leasehold" } else { "naive" };
        child::spawn(
            CHILD,
            ROLE,
            &[
                (child::LIFE_SECONDS, LIFE),
                ("url", url),
                ("storage", &self.storage.url()),
                ("index", &index.to_string()),
                ("lock", lock),
                ("name", name),
                ("gated", &gated.to_string()),
                ("tasks", &tasks.to_string()),
                ("ttl", &ttl.as_millis().to_string()),
                ("replicas", &replicas.to_string()),
                ("hold", &hold.as_millis().to_string()),
            ],
        )
    }

    /// A process, to be stopped and continued.
    pub(crate) fn child(&mut self, index: usize) -> &mut ChildProcess {
        &mut self.children[index]
    }

    /// Waits until one task of a process stands in the midst of its section, between its read and
    /// its write, where it stays, its executor alive; returns what it read.
    pub(crate) fn halt(&mut self, index: usize) -> u64 {
        self.storage.command(&["SET", &flag("halt", index), "1"]);
        let read = self.children[index].wait_for_line("halted ", wait::CEILING);
        read.parse().expect("a number")
    }

    /// Like [`halt`](Self::halt), but the whole executor stands still, for so long.
    pub(crate) fn stall(&mut self, index: usize, length: Duration) -> u64 {
        self.storage.command(&["SET", &flag("stall", index), &length.as_millis().to_string()]);
        let read = self.children[index].wait_for_line("halted ", wait::CEILING);
        read.parse().expect("a number")
    }

    /// Lets a halted task write.
    pub(crate) fn resume(&mut self, index: usize) {
        self.storage.command(&["DEL", &flag("halted", index)]);
        self.children[index].wait_for_line("went on", wait::CEILING);
    }

    /// The value at present.
    pub(crate) fn value(&self) -> u64 {
        self.storage.query::<Option<u64>>(&["GET", VALUE]).unwrap_or_default()
    }

    /// Stops (SIGSTOP) a process in the midst of a section, then another that got the lock after
    /// it, until the third has written.
    pub(crate) fn pause_two(&mut self) {
        let mut read = 0;
        for index in [0, 1] {
            read = self.halt(index);
            self.child(index).stop();
        }
        self.until_above(read);
        for index in [0, 1] {
            self.child(index).cont();
            self.resume(index);
        }
        self.work(10);
    }

    /// Waits until the value is above another.
    pub(crate) fn until_above(&self, value: u64) {
        let written = Patience::of(wait::CEILING).until(|| (self.value() > value).then_some(()));
        assert!(written.is_some(), "nobody wrote more than {value}");
    }

    /// Waits until the value has been increased so many times more.
    pub(crate) fn work(&self, increments: u64) {
        self.until_above(self.value() + increments - 1);
    }

    /// Lets all end, and gathers what they saw.
    pub(crate) fn finish(mut self) -> Finished {
        self.storage.command(&["SET", ENOUGH, "1"]);
        for child in &mut self.children {
            child.read_to_end(wait::CEILING);
            let done = child.seen().iter().any(|line| line == "done");
            assert!(done, "{:#?}", child.seen());
        }
        let value = self.value();
        let lines: Vec<String> =
            self.children.iter().flat_map(|child| child.seen().iter().cloned()).collect();
        let told = events::read(&lines);
        let history = told.chain([Event::CounterRead { value }]).collect();
        Finished { history, lines }
    }
}

/// What processes saw.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) history: History,
    lines: Vec<String>,
}

impl Finished {
    /// The troubles that were told: errors of the lock, by which tasks did not come to grief.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| line.strip_prefix("trouble "))
    }

    /// Checks the history, and says in a few words what happened.
    pub(crate) fn right(&self) -> String {
        let summary = self.history.check().unwrap_or_else(|found| panic!("{found:#?}"));
        assert_eq!(summary.increments, summary.accepted as u64, "{summary:?}");
        assert!(summary.accepted > 0, "{summary:?}");
        format!(
            "{} increments, none lost; {} stale writes refused; {} losses reported",
            summary.increments, summary.refused, summary.lost
        )
    }

    /// The same of processes of which two were paused past their ttl.
    pub(crate) fn right_though_paused(&self) -> String {
        let summary = self.history.check().unwrap_or_else(|found| panic!("{found:#?}"));
        assert!(summary.refused >= 2 && summary.lost >= 2, "{summary:?}");
        assert_eq!(summary.refused_in_belief, 0, "{summary:?}");
        self.right()
    }

    /// Finds the damage in the history of a control, and says in a few words what it is.
    pub(crate) fn wrong(&self) -> String {
        use leasehold_testkit::Violation::{
            LostUpdate, SharedToken, SharedWrite, StaleWrite, TokenFell,
        };
        let Err(found) = self.history.check() else { panic!("the control came to no harm") };
        let count = |kind: fn(&leasehold_testkit::Violation) -> bool| {
            found.iter().filter(|violation| kind(violation)).count()
        };
        let lost = found.iter().find_map(|violation| match violation {
            LostUpdate { accepted, found } => Some(accepted.saturating_sub(*found)),
            _ => None,
        });
        let kinds = [
            ("stale writes accepted", count(|v| matches!(v, StaleWrite { .. }))),
            ("tokens given twice", count(|v| matches!(v, SharedToken { .. } | SharedWrite { .. }))),
            ("tokens that were smaller than the last", count(|v| matches!(v, TokenFell { .. }))),
            ("increments lost", usize::try_from(lost.unwrap_or_default()).unwrap_or(usize::MAX)),
        ];
        let told = kinds.iter().filter(|(_, number)| *number > 0);
        let told: Vec<String> = told.map(|(what, number)| format!("{number} {what}")).collect();
        assert!(!told.is_empty(), "{found:#?}");
        told.join(", ")
    }
}
