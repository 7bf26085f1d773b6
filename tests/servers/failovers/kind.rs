use std::fmt;

/// What happens to a master.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It is killed, with what no replica has heard of.
    Killed,
    /// It stands still, with what no replica has heard of, and later wakes up as a master.
    Hung,
    /// An operator has another server take over.
    Replaced,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Killed, Self::Hung, Self::Replaced];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "killed",
            Self::Hung => "hung",
            Self::Replaced => "replaced",
        })
    }
}
