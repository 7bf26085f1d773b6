use std::{
    collections::btree_map::OccupiedEntry,
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{AcquisitionId, Clock, Entropy, Instant, LockName, QuorumSettings};
use leasehold_quorum::{QuorumRules, QuorumStore};

use super::{
    memory_node::{MemoryNode, NodeMistake},
    net::{A_DAY, Gale, Happening, Net, Peer, fill},
    node::SimNode,
};
use crate::{
    ManualClock, SeededEntropy,
    sim::{dice::Dice, drift::Drift, process::Process},
};

/// The nodes of a quorum, processes and the networks between them, in virtual time, from one seed.
pub struct QuorumWorld {
    clock: ManualClock,
    net: Arc<Mutex<Net>>,
    processes: Vec<(Process, Drift)>,
    settings: QuorumSettings,
    mistake: Option<NodeMistake>,
    seed: u64,
    nodes: usize,
    dice: Dice,
}

/// How a process may be stopped for a moment in the midst of its work: one in so many turns.
const PREEMPTS: u64 = 200;

impl QuorumWorld {
    /// A world without processes. Each node's clock is ahead of the world's by so much, or behind where
    /// it is negative, in microseconds.
    pub fn new(
        seed: u64,
        aheads: &[i64],
        settings: QuorumSettings,
        gale: Gale,
        mistake: Option<NodeMistake>,
    ) -> Self {
        let clock = ManualClock::new();
        let peer = |ahead: &i64| Peer {
            memory: MemoryNode::new(settings.clock_tolerance(), mistake),
            ahead: if *ahead < 0 {
                A_DAY.saturating_sub(Duration::from_micros(ahead.unsigned_abs()))
            } else {
                A_DAY + Duration::from_micros(ahead.unsigned_abs())
            },
            away_until: Instant::default(),
        };
        let peers = aheads.iter().map(peer).collect();
        let net = Net::new(clock.clone(), Dice::new(seed ^ 0x006e_6574), gale, peers);
        Self {
            clock,
            net: Arc::new(Mutex::new(net)),
            processes: Vec::new(),
            settings,
            mistake,
            seed,
            nodes: aheads.len(),
            dice: Dice::new(seed ^ 0x776f_726c),
        }
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The clock of the world.
    pub fn clock(&self) -> ManualClock {
        self.clock.clone()
    }

    /// Starts a process, and returns its number and its clock.
    pub fn start(&mut self, drift: Drift) -> (usize, ManualClock) {
        let process = Process::new(self.now(), drift);
        let clock = process.clock().clone();
        self.processes.push((process, drift));
        (self.processes.len() - 1, clock)
    }

    /// The store of a process.
    ///
    /// # Panics
    ///
    /// Panics unless there are 3, 5 or 7 nodes.
    pub fn store(&mut self, process: usize, rules: QuorumRules) -> QuorumStore<SimNode> {
        let clock = self.processes[process].0.clock().clone();
        let nodes = lock(&self.net).peers.len();
        let node =
            |node| SimNode { net: Arc::clone(&self.net), process, node, clock: clock.clone() };
        let (nodes, entropy) = ((0..nodes).map(node).collect(), self.entropy(process));
        let clock: Arc<dyn Clock> = Arc::new(clock.clone());
        self.processes[process].0.within(|| {
            let runtime = tokio::runtime::Handle::current();
            QuorumStore::new(nodes, self.settings, rules, clock, entropy, runtime)
                .expect("3, 5 or 7 nodes")
        })
    }

    /// The entropy of a process.
    pub fn entropy(&self, process: usize) -> Arc<dyn Entropy> {
        let number = process as u64 + 1;
        Arc::new(SeededEntropy::new(self.seed.wrapping_mul(1_000_003) ^ (number << 48)))
    }

    /// Does something where a process's tokio runtime is the present one.
    pub fn within<T>(&mut self, process: usize, act: impl FnOnce() -> T) -> T {
        self.processes[process].0.within(act)
    }

    /// Starts a task of a process.
    pub fn spawn<F>(&mut self, process: usize, task: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        drop(self.processes[process].0.spawn(task));
    }

    /// Stops a process until an instant.
    pub fn pause(&mut self, process: usize, until: Instant) {
        let now = self.now();
        self.processes[process].0.stop_until(now, until);
    }

    /// Nothing passes between a process and a node until an instant.
    pub fn cut(&mut self, process: usize, node: usize, until: Instant) {
        lock(&self.net).cuts.insert((process, node), until);
    }

    /// A node answers nothing until an instant; then it has lost everything, or nothing.
    pub fn fell(&mut self, node: usize, until: Instant, loses: bool) {
        let mut net = lock(&self.net);
        net.peers[node].away_until = until;
        if loses {
            let back = net.micros(node) + micros(until.saturating_since(net.now()));
            let out = match self.mistake {
                Some(NodeMistake::VotesAtOnce) => 0,
                _ => micros(self.settings.stay_out()),
            };
            net.peers[node].memory.lose_all(back + out);
        }
    }

    /// From now on nothing goes wrong.
    pub fn clear_up(&mut self, gale: Gale) {
        let now = self.now();
        let mut net = lock(&self.net);
        net.gale = gale;
        net.cuts.clear();
        for peer in &mut net.peers {
            peer.away_until = peer.away_until.min(now);
        }
    }

    /// Who sends things that are not for the nodes, and does something when they come.
    pub fn post(&self) -> impl Fn(Duration, Box<dyn FnOnce(Instant) + Send>) + Send + Sync + use<> {
        let net = Arc::clone(&self.net);
        move |after, deed| {
            let mut net = lock(&net);
            let at = net.now() + after;
            net.schedule(at, Happening::Deed(deed));
        }
    }

    /// Which nodes have a lease of a lock, and whose it is.
    pub fn holders(&self, name: &LockName) -> Vec<(usize, AcquisitionId, u64)> {
        let mut net = lock(&self.net);
        let holder = |node: usize| {
            let now = net.micros(node);
            let (id, attempt) = net.peers[node].memory.holder(now, name)?;
            Some((node, id, attempt))
        };
        (0..self.nodes).filter_map(holder).collect()
    }

    /// Keeps a log of all commands about one acquisition, to look into a run.
    pub fn trace(&mut self) {
        lock(&self.net).trace = Some(Vec::new());
    }

    /// The log.
    pub fn traced(&self) -> Vec<String> {
        lock(&self.net).trace.clone().unwrap_or_default()
    }

    /// How many commands were sent.
    pub fn sent(&self) -> u64 {
        lock(&self.net).sent
    }

    /// Lets the world run until an instant.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            self.deliver();
            if self.run_processes() {
                continue;
            }
            let now = self.now();
            let turns = self.processes.iter().filter_map(|(process, _)| process.next_turn(now));
            let first = lock(&self.net).happenings.keys().next().map(|(at, _)| *at);
            match turns.chain(first).min().filter(|next| *next <= end) {
                Some(next) => self.clock.set(next.max(now)),
                None => return self.clock.set(end.max(now)),
            }
        }
    }

    fn deliver(&mut self) {
        let now = self.now();
        loop {
            let mut net = lock(&self.net);
            let due = net.happenings.first_entry().filter(|entry| entry.key().0 <= now);
            let Some(happening) = due.map(OccupiedEntry::remove) else { return };
            match happening {
                Happening::Arrival { process, node, command, slot } => {
                    net.arrive(process, node, &command, slot);
                }
                Happening::Answer { process, slot, answer } => {
                    drop(net);
                    self.processes[process].0.deliver(Box::new(move || fill(&slot, answer)));
                }
                Happening::Push { process, listener, push } => {
                    drop(net);
                    self.processes[process].0.deliver(Box::new(move || {
                        if let Some(listener) = listener.upgrade() {
                            listener.on_push(push);
                        }
                    }));
                }
                Happening::Deed(deed) => {
                    drop(net);
                    deed(now);
                }
            }
        }
    }

    fn run_processes(&mut self) -> bool {
        let now = self.now();
        let mut ran = false;
        for number in 0..self.processes.len() {
            let process = &mut self.processes[number].0;
            if process.next_turn(now).is_none_or(|at| at > now) {
                continue;
            }
            ran = true;
            let stop = (self.dice.below(PREEMPTS) == 0)
                .then(|| self.dice.spread(Duration::from_micros(1), Duration::from_millis(5)));
            let polls = stop.map(|_| self.dice.below(24));
            process.run(now, polls, self.dice.below(2) == 0);
            if let Some(time) = stop {
                self.pause(number, now + time);
            }
        }
        ran
    }
}

impl fmt::Debug for QuorumWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumWorld").field("clock", &self.clock).finish_non_exhaustive()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
