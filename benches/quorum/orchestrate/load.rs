use std::fmt;

/// How many processes with how many tasks take locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// One process of so many tasks, each with a lock of its own.
    Own(usize),
    /// Some processes of so many tasks each, which want one lock.
    One(usize, usize),
}

impl Load {
    /// All of them, in the order of the tables.
    pub(super) const ALL: [Self; 4] = [Self::Own(1), Self::Own(16), Self::Own(64), Self::HOT];

    /// The one that is contended.
    pub(super) const HOT: Self = Self::One(4, 8);

    pub(super) fn processes(self) -> usize {
        match self {
            Self::Own(_) => 1,
            Self::One(processes, _) => processes,
        }
    }

    pub(super) fn tasks(self) -> usize {
        match self {
            Self::Own(tasks) | Self::One(_, tasks) => tasks,
        }
    }

    /// Whether each task has a lock of its own.
    pub(super) fn has_own_names(self) -> bool {
        matches!(self, Self::Own(_))
    }
}

/// As rows are named.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(tasks) => write!(f, "own-{tasks}"),
            Self::One(processes, tasks) => write!(f, "one-{processes}x{tasks}"),
        }
    }
}
