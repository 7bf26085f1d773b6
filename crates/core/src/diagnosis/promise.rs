use std::fmt;

/// A promise of Leasehold, by its number in `docs/guarantees.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Promise {
    /// P1: at most one holder believes that it holds a lock.
    OneBeliever,
    /// P2: fences only grow.
    FencesGrow,
    /// P3: a re-entry is the same lease.
    ReentryIsTheSameLease,
    /// P4: a command that runs twice ends in the same state.
    TwiceIsOnce,
    /// P5: a loss is told before the server can grant the lock to another.
    LossIsTold,
    /// P6: an answer that is missing is not a loss.
    UnknownIsNotLost,
    /// P7: first come, first served.
    FirstComeFirstServed,
    /// P8: nothing dead holds a lock for long.
    NothingHoldsForLong,
    /// P9: nothing leaks.
    NothingLeaks,
    /// P10: a call ends when it says.
    ACallEnds,
}

impl Promise {
    /// The number of the promise, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// As `P1`.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_have_the_numbers_of_the_page() {
        assert_eq!(Promise::OneBeliever.to_string(), "P1");
        assert_eq!(Promise::FencesGrow.to_string(), "P2");
        assert_eq!(Promise::FirstComeFirstServed.to_string(), "P7");
        assert_eq!(Promise::ACallEnds.to_string(), "P10");
    }
}
