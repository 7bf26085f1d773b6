use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant, LockName, RuntimeId,
    seam::Part,
    store::{Command, ForceRelease, Inspection, LeaseRecord},
};
use tokio::task::JoinHandle;

use super::{
    dice::Dice,
    drift::Drift,
    line::Line,
    mishap::Mishap,
    network::{Happening, Wire},
    process::Process,
    route::{Router, Rules},
    server::Peek,
    servers::{Fleet, Layout},
    spy::Spy,
    stops::Stops,
    trace::{Step, Trace},
    weather::Weather,
};
use crate::{ManualClock, Mistake, SeededEntropy, faulty::CommandFacts, history::Deed};

/// A server, processes and the network between them, in virtual time, from one seed.
///
/// Everything happens on the thread that calls [`run_until`](Self::run_until), in an order that
/// follows from the seed.
pub struct World {
    pub(super) clock: ManualClock,
    pub(super) dice: Dice,
    pub(super) fleet: Arc<Mutex<Fleet>>,
    pub(super) wire: Arc<Mutex<Wire>>,
    pub(super) spy: Spy,
    pub(super) routers: Vec<Arc<Router>>,
    pub(super) rules: Rules,
    pub(super) processes: Vec<Process>,
    pub(super) runtimes: Arc<Mutex<Vec<Option<RuntimeId>>>>,
    seed: u64,
}

/// What a task of a process needs of its world: its clock, and the world's.
#[derive(Debug, Clone)]
pub struct Place {
    /// Which process it is.
    pub process: usize,
    /// The process's own clock.
    pub local: ManualClock,
    /// The clock of the world, with which histories are written.
    pub world: ManualClock,
    /// How the two belong together.
    pub drift: Drift,
    /// When the process was stopped, by the clock of the world.
    pub stops: Stops,
}

/// Sends messages that are not for the server of locks.
#[derive(Debug, Clone)]
pub struct Post(Arc<Mutex<Wire>>);

impl Post {
    /// Does something after a while, whatever becomes of the sender.
    pub fn send(&self, after: Duration, deed: impl FnOnce(Instant) + Send + 'static) {
        let mut wire = lock(&self.0);
        let at = wire.now() + after;
        wire.schedule(at, Happening::Visit(Box::new(deed)));
    }
}

impl World {
    /// A world without processes, calm, whose log is kept or not.
    pub fn new(
        seed: u64,
        layout: Layout,
        mistake: Option<Mistake>,
        rules: Rules,
        traced: bool,
    ) -> Self {
        let (clock, spy) = (ManualClock::new(), Spy::default());
        let (dice, wire_dice) = (Dice::new(seed ^ 0x0077_6f72), Dice::new(seed ^ 0x7769_7265));
        let trace = Trace::new(traced);
        let wire = Wire::new(clock.clone(), wire_dice, spy.clone(), trace, &layout);
        let fleet = Arc::new(Mutex::new(Fleet::new(layout, &clock, mistake)));
        Self {
            clock,
            dice,
            fleet,
            wire: Arc::new(Mutex::new(wire)),
            spy,
            routers: Vec::new(),
            rules,
            processes: Vec::new(),
            runtimes: Arc::default(),
            seed,
        }
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// What a spy saw and tasks told.
    pub fn spy(&self) -> &Spy {
        &self.spy
    }

    /// Another look at the servers.
    pub fn peek(&self) -> Peek {
        Peek(Arc::clone(&self.fleet))
    }

    /// Another sender of messages.
    pub fn post(&self) -> Post {
        Post(Arc::clone(&self.wire))
    }

    /// Changes what goes wrong.
    pub fn set_weather(&self, weather: Weather) {
        lock(&self.wire).weather = weather;
    }

    /// From now on nothing goes wrong, and what is on its way arrives within `by`.
    pub fn clear_up(&mut self, by: Duration) {
        lock(&self.wire).clear_up(by);
        lock(&self.fleet).hurry(self.clock.now() + by);
        let latest = self.now() + by;
        self.processes.iter_mut().for_each(|process| process.stop_no_longer_than(latest));
    }

    /// Starts a process whose clock runs in its own way.
    pub fn start(&mut self, drift: Drift) -> Place {
        let process = Process::new(self.now(), drift);
        let (local, stops) = (process.clock().clone(), process.stops().clone());
        let number = lock(&self.wire).connect();
        let layout = lock(&self.fleet).layout.clone();
        let dice = Dice::new(self.seed ^ 0x726f_7574 ^ (number as u64 + 1) << 32);
        let router =
            Router::new(Arc::clone(&self.wire), number, local.clone(), layout, self.rules, dice);
        self.processes.push(process);
        self.routers.push(router);
        lock(&self.runtimes).push(None);
        Place { process: number, local, world: self.clock.clone(), drift, stops }
    }

    /// The store of a process.
    pub fn line(&self, place: &Place) -> Line {
        let (process, fleet) = (place.process, Arc::clone(&self.fleet));
        let (runtimes, router) = (Arc::clone(&self.runtimes), Arc::clone(&self.routers[process]));
        let layout = lock(&fleet).layout.clone();
        let announce = move |runtime| {
            lock(&runtimes)[process] = Some(runtime);
            lock(&fleet).nodes.iter().for_each(|node| node.server.watch(process, runtime));
        };
        Line::new(Arc::clone(&self.wire), process, place.local.clone(), layout, router, announce)
    }

    /// Lets a process look where the servers are, as long as it lives.
    pub fn watch(&mut self, process: usize) {
        let router = Arc::clone(&self.routers[process]);
        drop(self.spawn(process, async move { router.watch().await }));
    }

    /// The entropy of a process.
    pub fn entropy(&self, place: &Place) -> Arc<dyn Entropy> {
        let number = place.process as u64 + 1;
        Arc::new(SeededEntropy::new(self.seed.wrapping_mul(1_000_003) ^ (number << 48)))
    }

    /// Does something where a process's tokio runtime is the present one.
    pub fn within<T>(&mut self, process: usize, act: impl FnOnce() -> T) -> T {
        self.processes[process].within(act)
    }

    /// Starts a task of a process; `None` after its crash.
    pub fn spawn<F>(&mut self, process: usize, task: F) -> Option<JoinHandle<F::Output>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.processes[process].spawn(task)
    }

    /// Whether a process has not crashed.
    pub fn is_alive(&self, process: usize) -> bool {
        self.processes[process].is_alive()
    }

    /// Stops a process until an instant.
    pub fn pause(&mut self, process: usize, until: Instant) {
        self.note(|| Step::Paused { process, until });
        let now = self.now();
        self.processes[process].stop_until(now, until);
    }

    /// Cuts a process off from the server until an instant.
    pub fn cut(&mut self, process: usize, until: Instant) {
        lock(&self.wire).cut(process, until);
    }

    /// Breaks the subscription of a process.
    pub fn unsubscribe(&mut self, process: usize) {
        lock(&self.wire).unsubscribe(process);
    }

    /// Ends a process where it stands; what it sent is on its way.
    pub fn crash(&mut self, process: usize) {
        lock(&self.wire).crash(process);
        if let Some(runtime) = lock(&self.runtimes)[process] {
            self.spy.everywhere(self.now(), Deed::Crashed { runtime });
        }
        self.processes[process].crash();
    }

    /// The server forgets everything.
    pub fn flush(&mut self) {
        self.note(|| Step::Note("FLUSHALL".into()));
        lock(&self.fleet).nodes.iter().for_each(|node| node.server.clear());
        self.spy.everywhere(self.now(), Deed::Forgot);
    }

    /// The server forgets one part of what it knows of a name.
    pub fn lose(&mut self, name: &LockName, part: Part) {
        self.note(|| Step::Note(format!("{part:?} of {name} is lost")));
        let fleet = lock(&self.fleet);
        fleet.nodes[fleet.home(name)].server.lose(name, part);
        drop(fleet);
        self.spy.about(self.now(), name, Deed::PartLost { part });
    }

    /// What a process sends goes to a replica until an instant.
    pub fn mislead(&mut self, process: usize, until: Instant) {
        lock(&self.wire).mislead(process, until);
    }

    /// Something is to go wrong with one message.
    pub fn mishap(&mut self, mishap: Mishap) {
        lock(&self.wire).mishap(mishap);
    }

    /// An operator ends whatever lease stands; whether there was one.
    pub fn force_release(&mut self, name: &LockName) -> bool {
        let Some(record) = self.holder(name) else { return false };
        let name = name.clone();
        let command =
            Command::ForceRelease(ForceRelease { name, id: record.id, fence: record.fence });
        let home = lock(&self.fleet).home(command.names()[0]);
        self.execute(home, &command).0.is_ok()
    }

    /// Who holds a lock, as the server has it.
    pub fn holder(&self, name: &LockName) -> Option<LeaseRecord> {
        match self.inspect(name) {
            Inspection::Held(record) => Some(record),
            Inspection::Free { .. } => None,
        }
    }

    /// What is wrong with how processes looked for servers.
    pub fn wrong_looks(&self) -> Vec<String> {
        let looks = self.routers.iter().enumerate();
        let named = |(process, router): (usize, &Arc<Router>)| {
            let wrong = router.wrong_looks().into_iter();
            wrong.map(move |what| format!("process {process}: {what}"))
        };
        looks.flat_map(named).collect()
    }

    /// What the server has of a lock.
    pub fn inspect(&self, name: &LockName) -> Inspection {
        self.peek().inspect(name)
    }

    /// Adds to the log.
    pub fn note(&self, step: impl FnOnce() -> Step) {
        lock(&self.wire).note(step);
    }

    /// Takes the log.
    pub fn into_trace(self) -> Trace {
        std::mem::take(&mut lock(&self.wire).trace)
    }

    /// Lets the world run until an instant.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            self.deliver();
            if self.run_processes() {
                continue;
            }
            let now = self.now();
            let turns = self.processes.iter().filter_map(|process| process.next_turn(now));
            let next = turns.chain(lock(&self.wire).next_happening()).min();
            match next.filter(|next| *next <= end) {
                Some(next) => self.clock.set(next.max(now)),
                None => return self.clock.set(end.max(now)),
            }
        }
    }

    fn run_processes(&mut self) -> bool {
        let (now, weather) = (self.now(), lock(&self.wire).weather);
        let mut ran = false;
        for number in 0..self.processes.len() {
            if self.processes[number].next_turn(now).is_none_or(|at| at > now) {
                continue;
            }
            ran = true;
            let paused = self.dice.chance(weather.pause).then(|| weather.detour(&self.dice));
            let moment = || self.dice.spread(MOMENT.0, MOMENT.1);
            let stops = paused.or_else(|| self.dice.chance(weather.preempt).then(moment));
            let polls = stops.map(|_| self.dice.below(MOST_POLLS));
            let sockets_first = self.dice.below(2) == 0;
            self.processes[number].run(now, polls, sockets_first);
            if let Some(time) = stops {
                self.pause(number, now + time);
            }
        }
        ran
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("clock", &self.clock)
            .field("processes", &self.processes)
            .finish_non_exhaustive()
    }
}

/// How long the system lets others run.
const MOMENT: (Duration, Duration) = (Duration::from_micros(1), Duration::from_millis(1));
/// How many polls of a process's tasks come at most before it is stopped in their midst.
const MOST_POLLS: u64 = 24;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
