use leasehold_core::Instant;

use crate::{blocked::Ration, durations::LOG_PAUSE};

/// How much is logged of what may happen very often.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// The waits that were reported.
    pub(crate) blocked: Ration,
    /// The waits for this very process that were warned of.
    pub(crate) suspects: Ration,
    /// The unconfirmed runs that were warned of.
    pub(crate) unconfirmed: Ration,
    /// The messages that were dropped.
    pub(super) dropped: DroppedMessages,
}

/// Messages that were dropped, and when that was logged last.
#[derive(Debug, Default)]
pub(super) struct DroppedMessages {
    logged_at: Option<Instant>,
    count: u64,
}

impl DroppedMessages {
    /// Counts one more; yields how many there were since the last line of the log, if another is due.
    pub(super) fn add(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged_at.is_some_and(|at| now.saturating_since(at) < LOG_PAUSE) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flood_of_messages_is_one_line_a_minute() {
        let mut dropped = DroppedMessages::default();
        let at = |seconds| Instant::at(Duration::from_secs(seconds));
        assert_eq!(dropped.add(at(5)), Some(1));
        for second in 5..65 {
            assert_eq!(dropped.add(at(second)), None);
        }
        assert_eq!(dropped.add(at(65)), Some(61));
        assert_eq!(dropped.add(at(66)), None);
    }
}
