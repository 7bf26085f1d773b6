use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_testkit::sim::{Peek, Post, Spy};

use super::{
    plan::{Habits, Plan},
    storage::Storages,
};

/// What the tasks of all processes share.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) plan: Plan,
    pub(crate) spy: Spy,
    pub(crate) post: Post,
    pub(crate) peek: Peek,
    pub(crate) storages: Storages,
    ending: AtomicBool,
    quiet: AtomicBool,
    complaints: Mutex<Vec<String>>,
}

impl Scene {
    pub(crate) fn new(plan: Plan, spy: Spy, post: Post, peek: Peek) -> Arc<Self> {
        let storages = Storages::new(&plan.names, &spy);
        let quiet = AtomicBool::new(plan.is_calm());
        let (ending, complaints) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { plan, spy, post, peek, storages, ending, quiet, complaints })
    }

    /// How the tasks behave; towards the end nobody misbehaves any more.
    pub(crate) fn habits(&self) -> Habits {
        let habits = self.plan.habits;
        if !self.is_ending() {
            return habits;
        }
        let (cancels, forgets, minimums) = (0, 0, 0);
        let longest_hold = habits.longest_hold.min(Self::LAST_HOLD);
        Habits { cancels, forgets, minimums, longest_hold, ..habits }
    }

    /// The longest hold once the tasks come to an end.
    const LAST_HOLD: Duration = Duration::from_millis(20);

    /// Tells the tasks to come to an end.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Nothing goes wrong from now on, and what went wrong before is over.
    pub(crate) fn calm_down(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Whether nothing goes wrong.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Something is not as it should be.
    pub(crate) fn complain(&self, complaint: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(complaint);
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
