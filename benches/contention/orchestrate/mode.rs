use std::fmt;

use crate::table::Key;

/// A load: processes of so many tasks, what they do with the lock, and between two locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mode {
    pub(crate) processes: usize,
    pub(crate) workers: usize,
    pub(crate) hold_ms: u64,
    pub(crate) pause_ms: u64,
}

impl Mode {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (processes, workers) in [(1, 8), (4, 8), (4, 1)] {
            for hold_ms in [0, 1] {
                all.extend([0, 5].map(|pause_ms| Self { processes, workers, hold_ms, pause_ms }));
            }
        }
        all
    }

    /// A mode without sections and pauses.
    pub(crate) fn bare(processes: usize, workers: usize) -> Self {
        Self { processes, workers, hold_ms: 0, pause_ms: 0 }
    }

    /// The row of a subject.
    pub(crate) fn row(self, subject: &str) -> Key {
        Key::new(&self, &"", subject)
    }

    fn is_bare(&self) -> bool {
        self.hold_ms == 0 && self.pause_ms == 0
    }
}

/// As rows are named.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processes, workers, hold_ms, pause_ms } = self;
        write!(f, "{processes}x{workers}-hold{hold_ms}-pause{pause_ms}")
    }
}

/// The subjects, in the order of the tables. The first is what the others are compared with.
pub(crate) const SUBJECTS: [&str; 8] = [
    "leasehold",
    "leasehold-drop",
    "floor-one-script",
    "floor-push",
    "floor-queue",
    "tokio-mutex",
    "rslock",
    "rslock-default",
];

/// Whether a subject hands the lock over whenever it acquires it.
pub(crate) fn is_floor(subject: &str) -> bool {
    subject.starts_with("floor-")
}

/// The load with which a subject runs in a mode, if it has a place there.
pub(crate) fn shape(subject: &str, mode: Mode) -> Option<Mode> {
    match subject {
        "floor-one-script" => mode.is_bare().then_some(Mode::bare(1, 1)),
        "floor-push" => mode.is_bare().then_some(Mode::bare(2, 1)),
        "leasehold-drop" => (mode == Mode::bare(4, 1)).then_some(mode),
        "floor-queue" => (mode == Mode::bare(mode.processes, 1)).then_some(mode),
        "tokio-mutex" => (mode.processes == 1).then_some(mode),
        _ => Some(mode),
    }
}
