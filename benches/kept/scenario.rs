use std::{fmt, time::Duration};

use crate::{
    Failure,
    bed::Bed,
    kind::Kind,
    pairs::{self, Names},
    processes, recall,
    round::Round,
    subjects::Subject,
    table::Key,
};

/// What is measured, in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    /// One task takes and releases one name.
    OneName(Kind),
    /// 64 tasks take and release names of their own, 1,000 in all.
    OwnNames(Kind),
    /// 64 tasks take and release each name once; turns are kept for so many milliseconds.
    UsedOnce(u64),
    /// Two processes take turns; each asks again when it has released, so that the other waits.
    Overlapping,
    /// Two processes take turns; each asks when the other has released, so that nobody waits.
    Alternating,
    /// Four processes of eight tasks want one name, and hold it for so many milliseconds.
    Crowd(u64),
    /// A runtime wants a name that another one keeps.
    Recall,
}

/// For how long turns are kept where it does not matter: longer than a round.
const LONG_MS: u64 = 20_000;

/// For how long turns are kept that are to be over within a round.
const SHORT_MS: u64 = 100;

impl Scenario {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        let kinds = [Kind::Multi, Kind::Current];
        let mut all = Vec::from(kinds.map(Self::OneName));
        all.extend(kinds.map(Self::OwnNames));
        all.extend([SHORT_MS, LONG_MS].map(Self::UsedOnce));
        all.extend([Self::Overlapping, Self::Alternating, Self::Crowd(0), Self::Crowd(1)]);
        all.push(Self::Recall);
        all
    }

    /// How many rounds of each subject; odd, so that the median is one that was seen.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::OneName(_) | Self::OwnNames(_) | Self::Recall => 7,
            Self::Overlapping | Self::Alternating | Self::Crowd(_) => 11,
            Self::UsedOnce(_) => 15,
        }
    }

    /// The row of a subject.
    pub(crate) fn row(self, subject: Subject) -> Key {
        Key::new(&"", &self, subject.name())
    }

    /// What is compared here. The first is compared with the others.
    pub(crate) fn subjects(self) -> &'static [Subject] {
        match self {
            Self::OneName(_) | Self::OwnNames(_) | Self::UsedOnce(_) | Self::Alternating => {
                &[Subject::On, Subject::Off, Subject::Floor]
            }
            // The floor does not wait.
            Self::Overlapping | Self::Crowd(_) => &[Subject::On, Subject::Off],
            Self::Recall => &[Subject::Recalled, Subject::Free],
        }
    }

    /// Runs a round of every subject.
    pub(crate) fn round(
        self,
        bed: &mut Bed,
        number: usize,
    ) -> Result<Vec<(Subject, Round)>, Failure> {
        if self == Self::Recall {
            return recall::round(bed, Duration::from_millis(LONG_MS));
        }
        let mut subjects = self.subjects().to_vec();
        // None of them is always the first.
        let turned = number % subjects.len();
        subjects.rotate_left(turned);
        subjects.into_iter().map(|subject| Ok((subject, self.measure(bed, subject)?))).collect()
    }

    fn measure(self, bed: &mut Bed, subject: Subject) -> Result<Round, Failure> {
        let pairs = |tasks, names, keep_ms| pairs::Load {
            tasks,
            names,
            keep_idle: Duration::from_millis(keep_ms),
        };
        let turns = |processes, tasks, hold_ms| processes::Load {
            processes,
            tasks,
            hold: Duration::from_millis(hold_ms),
            alternate: self == Self::Alternating,
            keep_idle: Duration::from_millis(LONG_MS),
        };
        match self {
            Self::OneName(kind) => {
                pairs::measure(bed, kind, pairs(1, Names::Again(1), LONG_MS), subject)
            }
            Self::OwnNames(kind) => {
                pairs::measure(bed, kind, pairs(64, Names::Again(1_000), LONG_MS), subject)
            }
            Self::UsedOnce(ms) => {
                pairs::measure(bed, Kind::Multi, pairs(64, Names::Once, ms), subject)
            }
            Self::Overlapping | Self::Alternating => {
                processes::measure(bed, turns(2, 1, 0), subject)
            }
            Self::Crowd(ms) => processes::measure(bed, turns(4, 8, ms), subject),
            Self::Recall => Err("a recall has its own rounds".into()),
        }
    }
}

/// As rows are named.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneName(kind) => write!(f, "one-name/{kind}"),
            Self::OwnNames(kind) => write!(f, "own-names/{kind}"),
            Self::UsedOnce(ms) => write!(f, "used-once/{ms}ms"),
            Self::Overlapping => f.write_str("turns/overlapping"),
            Self::Alternating => f.write_str("turns/alternating"),
            Self::Crowd(ms) => write!(f, "4x8/{ms}ms"),
            Self::Recall => f.write_str("recall"),
        }
    }
}
