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
    latest: Mutex<Duration>,
}

impl Scene {
    pub(crate) fn new(plan: Plan, spy: Spy, post: Post, peek: Peek) -> Arc<Self> {
        let storages = Storages::new(&plan.names, &spy);
        let quiet = AtomicBool::new(plan.is_calm());
        let ending = AtomicBool::new(false);
        let (complaints, latest) = (Mutex::default(), Mutex::default());
        Arc::new(Self { plan, spy, post, peek, storages, ending, quiet, complaints, latest })
    }

    /// How the tasks behave; towards the end none misbehaves any more.
    pub(crate) fn habits(&self) -> Habits {
        let habits = self.plan.habits;
        if !self.is_ending() {
            return habits;
        }
        let (cancels, forgets, minimums, late_polls) = (0, 0, 0, 0);
        let longest_hold = habits.longest_hold.min(Self::LAST_HOLD);
        Habits { cancels, forgets, minimums, late_polls, longest_hold, ..habits }
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

    /// A call ended so long after it was due, through no fault of its process.
    pub(crate) fn was_late(&self, late: Duration) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = late.max(*latest);
    }

    /// The longest time by which a call was late.
    pub(crate) fn latest(&self) -> Duration {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is not as it should be.
    pub(crate) fn complain(&self, complaint: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(complaint);
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
