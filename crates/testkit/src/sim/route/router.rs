use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{Clock, Instant, StoreError, StoreErrorKind};
use leasehold_redis::seam::{FoundMaster, SlotOwners};
use tokio::sync::{
    self, Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::{looks::Looks, rules::Rules};
use crate::{
    ManualClock,
    sim::{
        dice::Dice,
        network::{About, Lane, Question, Told, Wire},
        servers::Layout,
    },
};

/// What a process knows of where the locks are.
#[derive(Debug)]
pub(in crate::sim) struct Router {
    pub(super) wire: Arc<Mutex<Wire>>,
    pub(super) process: usize,
    pub(super) clock: ManualClock,
    pub(super) layout: Layout,
    pub(in crate::sim) rules: Rules,
    pub(super) known: Mutex<Known>,
    looks: Mutex<Looks>,
    /// One attempt at a time for each connection, and one first look at a Cluster.
    pub(super) dialing: [sync::Mutex<()>; Lane::ALL],
    /// Locked while a command waits for replicas: the next one would stand in line at the server.
    waiting: [sync::Mutex<()>; Lane::ALL],
    pub(super) hint: Notify,
    /// Notified when the master is another one.
    pub(super) switched: Notify,
    /// For jitter.
    pub(super) dice: Dice,
}

/// The state of a [`Router`].
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) found: Option<FoundMaster>,
    /// How many masters there were.
    pub(super) epoch: u64,
    pub(super) looks: u64,
    /// The connections that lead to a master whose role was proven.
    pub(super) dialed: [Option<Dialed>; Lane::ALL],
    pub(super) owners: SlotOwners<usize>,
    /// Masters that were found since the last failover.
    seen: BTreeSet<usize>,
}

/// A connection to a master.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialed {
    pub(super) lane: Lane,
    /// Of which master, in the count of this process.
    pub(super) epoch: u64,
}

/// How often a process looks where the servers are, without a hint.
pub(super) const LOOK: Duration = Duration::from_millis(200);
/// For how long after a look no hint is followed.
const CALM: Duration = Duration::from_millis(20);
/// How long the answers to a question may take.
pub(super) const LONGEST_LOOK: Duration = Duration::from_millis(100);

impl Router {
    pub(in crate::sim) fn new(
        wire: Arc<Mutex<Wire>>,
        process: usize,
        clock: ManualClock,
        layout: Layout,
        rules: Rules,
        dice: Dice,
    ) -> Arc<Self> {
        let (known, looks) = Default::default();
        let (hint, switched) = (Notify::new(), Notify::new());
        let (dialing, waiting) = Default::default();
        Arc::new(Self {
            wire,
            process,
            clock,
            layout,
            rules,
            known,
            looks,
            dialing,
            waiting,
            hint,
            switched,
            dice,
        })
    }

    /// Looks where the servers are, from time to time and when something was missed.
    pub(in crate::sim) async fn watch(&self) {
        loop {
            self.clock.sleep_until(self.clock.now() + CALM).await;
            tokio::select! {
                biased;
                () = self.hint.notified() => {}
                () = self.clock.sleep_until(self.clock.now() + LOOK) => {}
            }
            match self.layout {
                Layout::One => return,
                Layout::Group { .. } => drop(self.look_for_master().await),
                Layout::Cluster { .. } => drop(self.look_for_owners().await),
            }
        }
    }

    /// A command that waits for replicas is sent when those before it are answered.
    pub(in crate::sim) async fn turn(
        &self,
        number: usize,
        deadline: Instant,
    ) -> Result<sync::MutexGuard<'_, ()>, StoreError> {
        tokio::select! {
            biased;
            turn = self.waiting[number].lock() => Ok(turn),
            () = self.clock.sleep_until(deadline) => Err(not_found("others wait for replicas")),
        }
    }

    /// Asks, and returns what comes in the order of its arrival.
    pub(super) fn ask(&self, all: impl IntoIterator<Item = About>) -> Answers {
        let (answers, receiver) = unbounded_channel();
        let process = self.process;
        for about in all {
            let answers = answers.clone();
            self.wire().ask(Question { process, about, answers });
        }
        // What is lost on its way is waited for as what is late.
        Answers { receiver, _open: answers }
    }

    /// The next answer, if one comes in time.
    pub(super) async fn next(&self, answers: &mut Answers, until: Instant) -> Option<Told> {
        tokio::select! {
            biased;
            told = answers.receiver.recv() => told,
            () = self.clock.sleep_until(until) => None,
        }
    }

    /// Whether the process has found a master since the last failover.
    pub(in crate::sim) fn has_seen(&self, node: usize) -> bool {
        self.known().seen.contains(&node)
    }

    /// There is a failover: nothing was found since.
    pub(in crate::sim) fn forget_seen(&self) {
        self.known().seen.clear();
    }

    pub(super) fn has_found(&self, node: usize) {
        self.known().seen.insert(node);
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with how the process looked for servers.
    pub(in crate::sim) fn wrong_looks(&self) -> Vec<String> {
        self.looks().wrong()
    }

    pub(super) fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers to a question.
pub(super) struct Answers {
    receiver: UnboundedReceiver<Told>,
    _open: UnboundedSender<Told>,
}

/// The error of a command for which no server was found.
pub(super) fn not_found(what: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Definite, what, "try again")
}
