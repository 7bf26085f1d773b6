use leasehold_core::{
    Instant, StoreError,
    store::{Command, Push, Reply},
};

/// What happened at one point of a simulated run.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Step {
    Sent {
        process: usize,
        node: usize,
        call: u64,
        command: Command,
        fate: &'static str,
    },
    Executed {
        process: usize,
        node: usize,
        call: u64,
        command: Command,
        answer: Result<Reply, StoreError>,
    },
    Answered {
        process: usize,
        call: u64,
    },
    TimedOut {
        process: usize,
        call: u64,
    },
    Reset {
        process: usize,
        node: usize,
        lane: usize,
    },
    Pushed {
        process: usize,
        push: Push,
        fate: &'static str,
    },
    Heard {
        process: usize,
        push: Push,
    },
    Subscribed {
        process: usize,
        node: usize,
    },
    Unsubscribed {
        process: usize,
    },
    Cut {
        process: usize,
        until: Instant,
    },
    Misled {
        process: usize,
        until: Instant,
    },
    Paused {
        process: usize,
        until: Instant,
    },
    Crashed {
        process: usize,
    },
    /// A Sentinel or a view of a Cluster led a process there.
    Led {
        process: usize,
        node: usize,
    },
    Note(String),
}

/// The log of a run, kept on demand.
#[derive(Debug, Default)]
pub struct Trace {
    steps: Option<Vec<(Instant, Step)>>,
}

impl Trace {
    /// A log that is kept, or not.
    pub fn new(kept: bool) -> Self {
        Self { steps: kept.then(Vec::new) }
    }

    /// Whether it is kept.
    pub fn is_kept(&self) -> bool {
        self.steps.is_some()
    }

    /// Adds a step, which is made only if the log is kept.
    pub(super) fn add(&mut self, at: Instant, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut self.steps {
            steps.push((at, step()));
        }
    }

    /// The steps so far.
    pub fn steps(&self) -> &[(Instant, Step)] {
        self.steps.as_deref().unwrap_or_default()
    }
}
