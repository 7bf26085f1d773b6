use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use leasehold_core::{
    Clock, Instant, RuntimeId, StoreError, StoreErrorKind,
    store::{Listener, Push},
};
use leasehold_quorum::{NodeAnswer, NodeCommand};

use super::memory_node::MemoryNode;
use crate::{
    ManualClock,
    sim::dice::{Dice, Ppm},
};

/// What goes wrong between processes and the nodes of a quorum.
#[derive(Debug, Clone, Copy)]
pub struct Gale {
    /// The longest way of a message, as a rule.
    pub longest: Duration,
    /// How often one takes a detour.
    pub detours: Ppm,
    /// The longest detour.
    pub longest_detour: Duration,
    /// How often a command is lost.
    pub lost_there: Ppm,
    /// How often an answer is lost.
    pub lost_back: Ppm,
    /// How often a command comes twice.
    pub twice: Ppm,
}

/// The answer to a command, when it comes.
pub(super) type Slot = Arc<Mutex<SlotState>>;

#[derive(Debug, Default)]
pub(super) struct SlotState {
    pub(super) answer: Option<Result<NodeAnswer, StoreError>>,
    pub(super) waker: Option<std::task::Waker>,
}

pub(super) enum Happening {
    Arrival { process: usize, node: usize, command: NodeCommand, slot: Option<Slot> },
    Answer { process: usize, slot: Slot, answer: Result<NodeAnswer, StoreError> },
    Push { process: usize, listener: Weak<dyn Listener>, push: Push },
    Deed(Box<dyn FnOnce(Instant) + Send>),
}

/// A node: what it knows, and how well it is.
pub(super) struct Peer {
    pub(super) memory: MemoryNode,
    /// How far its clock is ahead of that of the world, plus a day.
    pub(super) ahead: Duration,
    /// Until when it answers nothing.
    pub(super) away_until: Instant,
}

/// All that is on its way, and the nodes.
pub(super) struct Net {
    pub(super) clock: ManualClock,
    pub(super) dice: Dice,
    pub(super) gale: Gale,
    pub(super) peers: Vec<Peer>,
    pub(super) happenings: BTreeMap<(Instant, u64), Happening>,
    happened: u64,
    /// Until when nothing passes between a process and a node.
    pub(super) cuts: BTreeMap<(usize, usize), Instant>,
    pub(super) listeners: BTreeMap<(usize, RuntimeId), (usize, Weak<dyn Listener>)>,
    pub(super) sent: u64,
    pub(super) trace: Option<Vec<String>>,
}

/// Added to every clock, so that those behind can be written as times ahead.
pub(super) const A_DAY: Duration = Duration::from_secs(86_400);

impl Net {
    pub(super) fn new(clock: ManualClock, dice: Dice, gale: Gale, peers: Vec<Peer>) -> Self {
        Self {
            clock,
            dice,
            gale,
            peers,
            happenings: BTreeMap::new(),
            happened: 0,
            cuts: BTreeMap::new(),
            listeners: BTreeMap::new(),
            sent: 0,
            trace: None,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn schedule(&mut self, at: Instant, happening: Happening) {
        self.happened += 1;
        self.happenings.insert((at, self.happened), happening);
    }

    /// The time of a node, in microseconds since the Unix epoch.
    pub(super) fn micros(&self, node: usize) -> u64 {
        let time = (self.clock.unix_time() + self.peers[node].ahead).saturating_sub(A_DAY);
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
    }

    fn way(&self) -> Duration {
        let Gale { longest, detours, longest_detour, .. } = self.gale;
        let least = Duration::from_micros(20);
        let most = if self.dice.chance(detours) { longest_detour } else { longest };
        self.dice.spread(least, most)
    }

    pub(super) fn send(&mut self, process: usize, node: usize, command: NodeCommand) -> Slot {
        self.sent += 1;
        let (slot, now) = (Slot::default(), self.now());
        if self.dice.chance(self.gale.twice) {
            let at = now
                + self.way()
                + self.dice.spread(Duration::from_micros(10), Duration::from_secs(3));
            let command = command.clone();
            self.schedule(at, Happening::Arrival { process, node, command, slot: None });
        }
        if self.dice.chance(self.gale.lost_there) {
            if self.dice.below(2) == 0 {
                let answer = Err(cut(StoreErrorKind::Definite));
                let (at, slot) = (now + self.way(), Arc::clone(&slot));
                self.schedule(at, Happening::Answer { process, slot, answer });
            }
            return slot;
        }
        let (at, answered) = (now + self.way(), Some(Arc::clone(&slot)));
        self.schedule(at, Happening::Arrival { process, node, command, slot: answered });
        slot
    }

    fn is_cut(&self, process: usize, node: usize) -> bool {
        self.cuts.get(&(process, node)).is_some_and(|until| *until > self.now())
    }

    /// A command has come to a node.
    pub(super) fn arrive(
        &mut self,
        process: usize,
        node: usize,
        command: &NodeCommand,
        slot: Option<Slot>,
    ) {
        let now = self.now();
        if self.peers[node].away_until > now || self.is_cut(process, node) {
            if let Some(slot) = slot
                && self.dice.below(2) == 0
            {
                let answer = Err(cut(StoreErrorKind::Indeterminate));
                let at = now + self.way();
                self.schedule(at, Happening::Answer { process, slot, answer });
            }
            return;
        }
        let micros = self.micros(node);
        let (answer, messages) = self.peers[node].memory.execute(micros, command);
        if let Some(trace) = &mut self.trace {
            let NodeCommand { name, id, word } = command;
            let copy = if slot.is_none() { " (late copy)" } else { "" };
            trace.push(format!("{now:?} {node} {name} {id} {word:?}{copy}: {answer:?}"));
        }
        for (runtime, push) in messages {
            let Some((to, listener)) = self.listeners.get(&(node, runtime)).cloned() else {
                continue;
            };
            if !self.dice.chance(self.gale.lost_back) && !self.is_cut(to, node) {
                let at = now + self.way();
                self.schedule(at, Happening::Push { process: to, listener, push });
            }
        }
        let Some(slot) = slot else { return };
        let at = now + self.way();
        if self.dice.chance(self.gale.lost_back) {
            if self.dice.below(2) == 0 {
                let answer = Err(cut(StoreErrorKind::Indeterminate));
                self.schedule(at, Happening::Answer { process, slot, answer });
            }
            return;
        }
        self.schedule(at, Happening::Answer { process, slot, answer: Ok(answer) });
    }
}

/// An answer is there.
pub(super) fn fill(slot: &Slot, answer: Result<NodeAnswer, StoreError>) {
    let mut state = slot.lock().unwrap_or_else(PoisonError::into_inner);
    state.answer = Some(answer);
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn cut(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "the connection has ended", "check the network")
}
