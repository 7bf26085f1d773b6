use std::time::Duration;

/// How long things run, and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    /// How many rounds; odd, so that the median is one that was seen.
    pub(crate) rounds: usize,
    /// For how long a subject runs before it is measured.
    pub(crate) warmup: Duration,
    /// For how long it is measured.
    pub(crate) measured: Duration,
    /// How often each kind of command is sent in a round.
    pub(crate) commands: usize,
    /// How many locks are made to see what they weigh.
    pub(crate) locks: usize,
    /// How many lock runtimes do nothing.
    pub(crate) processes: usize,
    /// How many messages are published in a round.
    pub(crate) messages: usize,
}

impl Lengths {
    /// What figures are made with.
    pub(crate) const FULL: Self = Self {
        rounds: 7,
        warmup: Duration::from_millis(300),
        measured: Duration::from_millis(1_500),
        commands: 2_048,
        locks: 100_000,
        processes: 200,
        messages: 4_000,
    };

    /// One quick pass, which shows that everything works.
    pub(crate) const QUICK: Self = Self {
        rounds: 1,
        warmup: Duration::from_millis(50),
        measured: Duration::from_millis(100),
        commands: 64,
        locks: 500,
        processes: 5,
        messages: 100,
    };
}
