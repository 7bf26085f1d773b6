use std::fmt;

use super::{Load, Site, Subject, round::Round};
use crate::table;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) site: Site,
    pub(super) load: Load,
    pub(super) subject: Subject,
}

impl Key {
    /// All rows, in the order of the tables.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for site in Site::ALL {
            for load in Load::ALL {
                let runs = Subject::ALL.into_iter().filter(|subject| subject.runs(site, load));
                all.extend(runs.map(|subject| Self { site, load, subject }));
            }
        }
        all
    }

    /// The row of a table.
    pub(super) fn row(self) -> table::Key {
        table::Key::new(&self.site, &self.load, self.subject.name())
    }

    /// What a round came to, a value for each column.
    pub(super) fn values(self, round: &Round) -> Vec<f64> {
        let rate = if self.load.has_own_names() { round.acquired } else { round.handed };
        let stuck = f64::from(u32::try_from(round.stuck).unwrap_or(u32::MAX));
        let [commands, cpu_us] = [round.commands, round.cpu_us].map(|all| all / rate);
        vec![rate, round.wait_p50_us, round.wait_p99_us, commands, cpu_us, stuck]
    }
}

/// As rows are named.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.site, self.load, self.subject)
    }
}
