//! Reports calls that have waited for long, and limits log lines that could repeat very often.

use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{Class, Instant, LockName};

use crate::{
    durations::LOG_PAUSE,
    error::{HolderInfo, QueuePosition},
};

/// The target of the event; part of the documented interface.
const TARGET: &str = "leasehold::blocked";

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) lock: LockName,
    pub(crate) class: Class,
    pub(crate) waited: Duration,
    pub(crate) position: QueuePosition,
    pub(crate) left_out: u64,
}

impl Report {
    /// Logs it; without a holder if the lock is free at the moment.
    pub(crate) fn log(self, holder: Option<HolderInfo>) {
        let Self { lock, class, waited, position, left_out } = self;
        let class = class.as_str();
        let Some(holder) = holder else {
            tracing::warn!(
                target: TARGET, %lock, class, ?waited, %position, left_out,
                "a call has waited for long, and nobody holds the lock at the moment"
            );
            return;
        };
        let HolderInfo { label, lease, fence, held_for, this_runtime, .. } = holder;
        let HolderInfo { remaining, kept, unrenewed_for, .. } = holder;
        if kept {
            tracing::warn!(
                target: TARGET, %lock, class, ?waited, %position, left_out,
                holder = label, this_runtime, %lease, %fence, ?held_for, kept, opens_in = ?remaining,
                "a call has waited for long, and nobody holds the lock: it is kept closed, and opens \
                 by itself"
            );
            return;
        }
        if let Some(unrenewed_for) = unrenewed_for {
            tracing::warn!(
                target: TARGET, %lock, class, ?waited, %position, left_out,
                holder = label, this_runtime, %lease, %fence, ?held_for, ?unrenewed_for, ends_in = ?remaining,
                "a call has waited for long, and the holder does not renew its lease: its process may be \
                 dead or stopped, or renews nothing; look at it, or wait until the lease ends"
            );
            return;
        }
        tracing::warn!(
            target: TARGET, %lock, class, ?waited, %position, left_out,
            holder = label, this_runtime, %lease, %fence, ?held_for,
            "a call has waited for long; find out why the holder keeps the lock"
        );
    }
}

/// Limits reports: within a period, each name is reported once, and at most `MOST` names are.
#[derive(Debug, Default)]
// ADR 0015
pub(crate) struct Ration {
    /// Until when each name counts.
    reported: BTreeMap<LockName, Instant>,
    left_out: u64,
}

impl Ration {
    const MOST: usize = 8;

    /// Asks whether something may be reported of `name` at `now`; `within` is the period. `None`: do not report.
    /// `Some(n)`: report it; `n` others, of further names, were left out since the last report.
    pub(crate) fn take(&mut self, name: &LockName, now: Instant, within: Duration) -> Option<u64> {
        self.reported.retain(|_, until| now < *until);
        if self.reported.contains_key(name) {
            return None;
        }
        if self.reported.len() >= Self::MOST {
            self.left_out += 1;
            return None;
        }
        self.reported.insert(name.clone(), now + within);
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Limits log lines that could repeat very often.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// The waits that were reported.
    pub(crate) blocked: Ration,
    /// Warnings that a call may wait for its own process.
    pub(crate) suspects: Ration,
    /// Warnings that the server has not confirmed that the lock of a run of `once` stays closed.
    pub(crate) unconfirmed: Ration,
    /// The messages that were dropped.
    pub(crate) dropped: DroppedMessages,
}

/// Messages that were dropped, and when that was logged last.
#[derive(Debug, Default)]
pub(crate) struct DroppedMessages {
    logged_at: Option<Instant>,
    count: u64,
}

impl DroppedMessages {
    /// Counts one more. If a log line is due, returns how many were dropped since the last one.
    pub(crate) fn add(&mut self, now: Instant) -> Option<u64> {
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
    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::at(Duration::from_secs(seconds))
    }

    fn name(n: usize) -> LockName {
        LockName::new(format!("lock-{n}")).unwrap()
    }

    #[test]
    fn a_name_is_reported_once_within_the_time() {
        let mut ration = Ration::default();
        assert_eq!(ration.take(&name(1), at(10), WITHIN), Some(0));
        for second in 10..20 {
            assert_eq!(ration.take(&name(1), at(second), WITHIN), None);
        }
        assert_eq!(ration.take(&name(1), at(20), WITHIN), Some(0));
    }

    #[test]
    fn only_so_many_names_are_reported_and_the_rest_is_counted() {
        let mut ration = Ration::default();
        let reported = (0..1000).filter(|n| ration.take(&name(*n), at(10), WITHIN).is_some());
        assert_eq!(reported.count(), Ration::MOST);
        assert_eq!(ration.take(&name(2000), at(20), WITHIN), Some(1000 - Ration::MOST as u64));
        assert_eq!(ration.take(&name(2001), at(20), WITHIN), Some(0));
        assert!(ration.reported.len() <= Ration::MOST);
    }

    #[test]
    fn a_short_time_of_one_call_leaves_what_others_have_reported() {
        let mut ration = Ration::default();
        for n in 0..Ration::MOST {
            assert_eq!(ration.take(&name(n), at(10), WITHIN), Some(0));
        }
        assert_eq!(ration.take(&name(99), at(12), Duration::from_secs(1)), None);
        assert_eq!(ration.take(&name(0), at(12), Duration::from_secs(1)), None);
        assert_eq!(ration.take(&name(99), at(20), Duration::from_secs(1)), Some(1));
        assert_eq!(ration.take(&name(99), at(21), Duration::from_secs(1)), Some(0));
    }

    #[test]
    fn a_flood_of_messages_is_one_line_a_minute() {
        let mut dropped = DroppedMessages::default();
        assert_eq!(dropped.add(at(5)), Some(1));
        for second in 5..65 {
            assert_eq!(dropped.add(at(second)), None);
        }
        assert_eq!(dropped.add(at(65)), Some(61));
        assert_eq!(dropped.add(at(66)), None);
    }
}
