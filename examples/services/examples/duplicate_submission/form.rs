use std::{ops::Range, time::Duration};

/// The forms, as they are submitted: those of a range at the same time.
pub(crate) const FORMS: [Range<u64>; 3] = [0..24, STALLING..DYING, DYING..ALL];
pub(crate) const ALL: u64 = 26;
const STALLING: u64 = 24;
const DYING: u64 = 25;

/// How often each is submitted.
pub(crate) const CLICKS: usize = 25;
/// How long a run takes.
pub(crate) const WORK: Duration = Duration::from_millis(20);
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// How long the lock remembers a form that was done: longer than the example runs.
pub(crate) const WINDOW: Duration = Duration::from_secs(120);

/// How the first run of a form goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Well,
    /// It fails, before it has written anything.
    Fails,
    /// Its instance stalls before the write, until another has done it.
    Stalls,
    /// Its instance dies after the write and before the answer.
    Dies,
}

impl Fate {
    pub(crate) fn of(form: u64) -> Self {
        match form {
            STALLING => Self::Stalls,
            DYING => Self::Dies,
            _ if form % 6 == 5 => Self::Fails,
            _ => Self::Well,
        }
    }

    /// How many forms do not succeed at once.
    pub(crate) fn unlucky() -> u64 {
        (0..ALL).map(|form| u64::from(Self::of(form) != Self::Well)).sum()
    }
}
