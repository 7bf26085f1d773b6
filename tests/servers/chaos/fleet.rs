use std::{thread, time::Duration};

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::{ChildProcess, Event, History, Patience, RedisServer};

use super::{
    CHILD,
    faults::Faults,
    plan::Plan,
    report::{Left, Report},
    site::Site,
    tally::Tally,
    values,
    worker::{ENOUGH, LEFT, MEMORY, TALLY},
};
use crate::support::{child, events, lease, wait};

/// How often a long run says that it goes on.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long processes have to end, with thousands of tasks.
const END: Duration = Duration::from_secs(120);

/// Processes at work, and the servers that they use.
#[derive(Debug)]
pub(crate) struct Fleet<'a> {
    plan: &'a Plan,
    /// The servers of the locks, behind proxies.
    pub(crate) site: Site,
    storage: RedisServer,
    running: Vec<ChildProcess>,
    killed: Vec<ChildProcess>,
}

/// Lets processes work under the faults of a plan, and reports.
pub(crate) fn run(plan: &Plan) -> Report {
    let site = Site::start(plan.topology);
    let storage = RedisServer::start();
    let (running, killed) = (Vec::new(), Vec::new());
    let mut fleet = Fleet { plan, site, storage, running, killed };
    for _ in 0..plan.processes {
        fleet.spawn();
    }
    let faults = fleet.suffer();
    fleet.end(faults)
}

impl Fleet<'_> {
    /// How many processes work.
    pub(crate) fn size(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn process(&self, index: usize) -> &ChildProcess {
        &self.running[index]
    }

    /// Kills a process, and starts another.
    pub(crate) fn replace(&mut self, index: usize) {
        let process = self.running.swap_remove(index);
        process.kill();
        self.killed.push(process);
        self.spawn();
    }

    fn spawn(&mut self) {
        let Plan { seed, tasks, names, ttl, gated, told, .. } = *self.plan;
        let number = self.running.len() + self.killed.len();
        let life = 4 * (self.plan.length + END);
        let mut process = child::spawn(
            CHILD,
            "worker",
            &[
                ("url", &self.site.url()),
                ("storage", &self.storage.url()),
                ("first", &(number * tasks).to_string()),
                ("seed", &(seed * 1_000 + number as u64).to_string()),
                ("tasks", &tasks.to_string()),
                ("names", &names.to_string()),
                ("ttl", &ttl.as_millis().to_string()),
                ("gated", &gated.to_string()),
                ("told", &told.to_string()),
                (child::LIFE_SECONDS, &life.as_secs().to_string()),
            ],
        );
        process.wait_for_line("ready", wait::CEILING);
        self.running.push(process);
    }

    /// Lets faults strike for as long as the plan says.
    fn suffer(&mut self) -> Faults {
        let mut faults = Faults::of(self.plan);
        let (began, mut told) = (SystemClock.now(), 0);
        while SystemClock.now().saturating_since(began) < self.plan.length {
            faults.strike(self);
            self.running.iter_mut().for_each(ChildProcess::catch_up);
            let seconds = SystemClock.now().saturating_since(began).as_secs();
            if seconds / PROGRESS.as_secs() > told {
                told = seconds / PROGRESS.as_secs();
                let (tally, struck) = (self.tally(), faults.count());
                println!("{seconds} s: {struck} faults, {} acquisitions", tally.of("acquired"));
            }
        }
        faults
    }

    /// Lets everybody come to an end without faults, and looks at what is left.
    fn end(mut self, faults: Faults) -> Report {
        self.site.calm();
        self.site.heal();
        self.site.settle();
        thread::sleep(2 * self.plan.ttl);
        let messages: Vec<_> = self.site.counts().collect();
        self.storage.command(&["SET", ENOUGH, "1"]);
        for process in &mut self.running {
            process.read_to_end(END);
            let done = process.seen().iter().any(|line| line == "done");
            assert!(done, "a process did not end well: {:#?}", process.seen().last());
        }
        let names = || (0..self.plan.names).map(|n| format!("n{n}"));
        Report {
            seed: self.plan.seed,
            seconds: self.plan.length.as_secs(),
            tally: self.tally(),
            strikes: faults.told(),
            struck: messages.iter().map(|one| one.struck).sum(),
            messages: messages.iter().map(|one| one.requests + one.replies + one.pushes).sum(),
            sums: names().map(|name| values::of(&self.storage, &name)).collect(),
            histories: self.histories(),
            memory: self.running.iter().map(memory).collect(),
            left: self.left(),
        }
    }

    fn tally(&self) -> Tally {
        let last = |process: &ChildProcess| {
            let line = process.seen().iter().rev().find_map(|line| line.strip_prefix(TALLY));
            line.unwrap_or_default().parse::<Tally>().expect("a tally")
        };
        self.running.iter().chain(&self.killed).map(last).sum()
    }

    /// The history of each lock, if the processes told of it.
    fn histories(&self) -> Vec<History> {
        let all = self.running.iter().chain(&self.killed);
        let told = events::read_of(all.flat_map(ChildProcess::seen));
        told.into_iter()
            .map(|(name, events)| {
                // Writes of killed processes may have been accepted without their being told.
                let sum = values::of(&self.storage, &name);
                let told = events.iter().filter(|e| matches!(e, Event::Incremented { .. })).count();
                let value = sum.shown - (sum.accepted - told as u64).min(sum.shown);
                events.into_iter().chain([Event::CounterRead { value }]).collect()
            })
            .collect()
    }

    fn left(&self) -> Left {
        let servers = self.site.servers();
        let places = || -> Vec<_> { servers.iter().flat_map(lease::in_use).collect() };
        let gone = Patience::of(wait::CEILING).until(|| places().is_empty().then_some(()));
        Left {
            places: gone.map_or_else(places, |()| Vec::new()),
            immortal: servers.iter().flat_map(RedisServer::keys_without_ttl).collect(),
            connections: self.site.counts().map(|one| one.open).sum(),
            processes: self
                .running
                .iter()
                .flat_map(ChildProcess::seen)
                .filter_map(|line| line.strip_prefix(LEFT).map(str::to_owned))
                .collect(),
        }
    }
}

/// The memory of a process over time, in KiB.
fn memory(process: &ChildProcess) -> Vec<u64> {
    let lines = process.seen().iter().filter_map(|line| line.strip_prefix(MEMORY));
    lines.map(|line| line.parse().expect("a number")).collect()
}
