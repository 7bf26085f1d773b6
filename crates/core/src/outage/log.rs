use std::{collections::BTreeMap, time::Duration};

use super::{subject::Subject, watch::AtStake};
use crate::{clock::Instant, durations::BLIP, store::StoreError};

/// Which lines the log gets, as a pure function of time and events.
///
/// Commands *fail in a row* from a first failure on, until an outage ends, or until a
/// [`tick`](Self::tick) at which the last command has succeeded and every failure is in the log. The
/// first failure has a line of its own, unless there was one in the last seconds. The others share a
/// line at each tick. One more line tells the end. A command that was sent before that end and fails
/// after it begins no new row.
#[derive(Debug)]
pub(super) struct OutageLog {
    failures: Option<Failures>,
    /// When commands stopped failing.
    ended_at: Option<Instant>,
    /// Whether the last command has succeeded.
    succeeded: bool,
    first_failures: Limit,
    losses: Limit,
    pub(super) regressions: Limit,
}

/// Commands that failed in a row.
#[derive(Debug, Default, Clone)]
pub(super) struct Failures {
    /// Whether a line of the log was about them.
    is_logged: bool,
    /// How many commands failed.
    failed: u64,
    /// How many of them failed since the last line, by kind.
    news: BTreeMap<&'static str, u64>,
    last_error: Option<StoreError>,
    /// How many leases were lost since the first failure.
    lost: u64,
    /// The duration of the longest outage that ended meanwhile.
    longest_outage: Duration,
}

/// A line for the log at the end of a few seconds.
#[derive(Debug)]
pub(super) struct Unlogged {
    /// Commands have failed since the last line.
    pub(super) failing: Option<Failures>,
    /// Commands fail no longer.
    pub(super) over: Option<Failures>,
    /// This number of leases were lost without a line of their own.
    pub(super) lost: u64,
    /// This number of fence counters lost data without a line of their own.
    pub(super) regressed: u64,
}

impl Default for OutageLog {
    fn default() -> Self {
        let [losses, regressions] = [(); 2].map(|()| Limit::new(5, Duration::from_secs(10)));
        let first_failures = Limit::new(1, Duration::from_secs(5));
        Self {
            failures: None,
            ended_at: None,
            succeeded: false,
            first_failures,
            losses,
            regressions,
        }
    }
}

impl OutageLog {
    /// A command of `sent_at` succeeded or failed at `now`. Returns whether its failure has a line of its own.
    pub(super) fn ended(
        &mut self,
        now: Instant,
        sent_at: Instant,
        subject: &Subject,
        error: Option<&StoreError>,
    ) -> bool {
        self.succeeded = error.is_none();
        let Some(error) = error else { return false };
        let begins = self.failures.is_none();
        let is_late = self.ended_at.is_some_and(|ended_at| sent_at < ended_at);
        if begins && (is_late || subject.is_probe()) {
            return false;
        }
        let failures = self.failures.get_or_insert_default();
        failures.failed += 1;
        failures.last_error = Some(error.clone().for_no_lock());
        if begins && self.first_failures.admits(now) {
            failures.is_logged = true;
            return true;
        }
        *failures.news.entry(subject.command).or_default() += 1;
        false
    }

    /// The server answers again at `now`, after it was out of reach for so long; yields what the log
    /// is to tell the end of.
    pub(super) fn reached(&mut self, now: Instant, outage: Duration) -> Option<Failures> {
        let failures = self.failures.as_mut()?;
        failures.longest_outage = failures.longest_outage.max(outage);
        if outage < BLIP { None } else { self.end(now) }
    }

    /// A lease was lost. Returns whether that has a line of its own.
    pub(super) fn lost(&mut self, now: Instant) -> bool {
        if let Some(failures) = &mut self.failures {
            failures.lost += 1;
        }
        self.losses.admits(now)
    }

    /// What was left out of the log in the last few seconds.
    pub(super) fn tick(&mut self, now: Instant) -> Unlogged {
        let mut news = Unlogged {
            failing: None,
            over: None,
            lost: self.losses.take_others(),
            regressed: self.regressions.take_others(),
        };
        match &mut self.failures {
            Some(failures) if !failures.news.is_empty() => {
                failures.is_logged = true;
                news.failing = Some(failures.clone());
                failures.news.clear();
            }
            Some(_) if self.succeeded => news.over = self.end(now),
            _ => {}
        }
        news
    }

    /// Commands fail no longer; yields what the log is to tell the end of.
    fn end(&mut self, now: Instant) -> Option<Failures> {
        self.ended_at = Some(now);
        self.failures.take().filter(|failures| failures.is_logged)
    }
}

impl Failures {
    /// Logs that commands fail, with what depends on the server; `unreachable_for` is `None` while
    /// the server answers.
    pub(super) fn log(&self, unreachable_for: Option<Duration>, at_stake: AtStake) {
        let what = match unreachable_for {
            None => "commands fail; the server answers others",
            Some(_) => "the server does not answer",
        };
        tracing::warn!(
            unreachable_for = unreachable_for.map(|time| tracing::field::debug(tenths(time))),
            failed = self.by_kind(),
            leases_at_risk = at_stake.leases,
            acquires_waiting = at_stake.waiting,
            leases_lost = self.lost,
            error = self.last_error.as_ref().map(tracing::field::display),
            "{what}"
        );
    }

    /// Logs that commands fail no longer.
    pub(super) fn log_end(&self) {
        let outage = self.longest_outage;
        let what =
            if outage.is_zero() { "commands no longer fail" } else { "the server answers again" };
        tracing::info!(
            unreachable_for = ?tenths(outage),
            failed = self.failed,
            leases_lost = self.lost,
            "{what}"
        );
    }

    /// Numbers of commands, as in `1 acquire, 2 renew`.
    fn by_kind(&self) -> String {
        let numbers = self.news.iter().map(|(kind, count)| format!("{count} {kind}"));
        numbers.collect::<Vec<_>>().join(", ")
    }
}

/// A time in tenths of a second, which is exact enough for a reader.
pub(super) fn tenths(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis() / 100 * 100).unwrap_or(u64::MAX))
}

/// Lets the first few of many equal events pass, and counts the others.
#[derive(Debug)]
pub(super) struct Limit {
    most: u32,
    /// Begins with its first event.
    window: Duration,
    since: Option<Instant>,
    passed: u32,
    others: u64,
}

impl Limit {
    /// Lets so many pass within a window.
    fn new(most: u32, window: Duration) -> Self {
        Self { most, window, since: None, passed: 0, others: 0 }
    }

    /// Whether an event at `now` is one of the few; otherwise it is counted.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_since(since) >= self.window) {
            self.since = Some(now);
            self.passed = 0;
        }
        let is_admitted = self.passed < self.most;
        if is_admitted {
            self.passed += 1;
        } else {
            self.others += 1;
        }
        is_admitted
    }

    /// How many events were counted since the last call.
    fn take_others(&mut self) -> u64 {
        std::mem::take(&mut self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreErrorKind;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Instant {
        Instant::at(SECOND * seconds)
    }

    fn error() -> StoreError {
        StoreError::new(StoreErrorKind::Definite, "refused", "look there")
    }

    fn of_many(command: &'static str) -> Subject {
        Subject { command, lock: None, lease: None }
    }

    fn fail(log: &mut OutageLog, now: Instant, kind: &'static str, times: u64) -> usize {
        let (subject, error) = (of_many(kind), error());
        (0..times).filter(|_| log.ended(now, now, &subject, Some(&error))).count()
    }

    fn succeed(log: &mut OutageLog, now: Instant) {
        log.ended(now, now, &of_many("renew"), None);
    }

    #[test]
    fn an_outage_is_a_first_line_a_summary_each_tick_and_an_end() {
        let mut log = OutageLog::default();
        assert_eq!(fail(&mut log, at(1), "renew", 1000), 1);
        let failing = log.tick(at(5)).failing.unwrap();
        assert_eq!((failing.by_kind(), failing.lost), ("999 renew".into(), 0));
        assert_eq!(fail(&mut log, at(6), "acquire", 3), 0);
        assert_eq!((0..1000).filter(|_| log.lost(at(7))).count(), 5);
        let news = log.tick(at(10));
        let failing = news.failing.unwrap();
        assert_eq!((failing.by_kind(), failing.lost), ("3 acquire".into(), 1000));
        assert_eq!((news.lost, news.over.is_none()), (995, true));
        let news = log.tick(at(15));
        assert!(news.failing.is_none() && news.over.is_none() && news.lost == 0);
        let over = log.reached(at(16), 15 * SECOND).unwrap();
        assert_eq!((over.longest_outage, over.failed, over.lost), (15 * SECOND, 1003, 1000));
        let news = log.tick(at(20));
        assert!(news.failing.is_none() && news.over.is_none());
    }

    #[test]
    fn a_flapping_server_costs_a_line_a_tick() {
        let (mut log, mut lines) = (OutageLog::default(), 0);
        for tick in 0..10 {
            for blip in 0..50 {
                let now = at(tick * 5) + SECOND / 10 * blip;
                lines += fail(&mut log, now, "heartbeat", 2);
                succeed(&mut log, now);
                lines += usize::from(log.reached(now, SECOND / 20).is_some());
            }
            let news = log.tick(at(tick * 5 + 5));
            lines += usize::from(news.failing.is_some()) + usize::from(news.over.is_some());
        }
        assert_eq!(lines, 11);
        assert!(log.tick(at(55)).over.is_some());
    }

    #[test]
    fn a_server_that_nobody_asks_is_not_said_to_answer_again() {
        let mut log = OutageLog::default();
        assert_eq!(fail(&mut log, at(1), "renew", 1), 1);
        assert!(log.tick(at(5)).over.is_none());
        assert_eq!(fail(&mut log, at(60), "release", 1), 0);
        assert_eq!(log.tick(at(65)).failing.unwrap().by_kind(), "1 release");
        succeed(&mut log, at(66));
        assert!(log.tick(at(70)).over.is_some());
    }

    #[test]
    fn a_row_that_nobody_heard_of_ends_in_silence() {
        let mut log = OutageLog::default();
        assert_eq!(fail(&mut log, at(1), "renew", 1), 1);
        assert!(log.reached(at(3), 2 * SECOND).is_some());
        assert_eq!(fail(&mut log, at(4), "renew", 1), 0);
        assert!(log.reached(at(6), 2 * SECOND).is_none());
        assert_eq!(fail(&mut log, at(6), "renew", 1), 1);
    }

    #[test]
    fn a_failure_of_a_row_that_is_over_begins_no_other() {
        let (mut log, error) = (OutageLog::default(), error());
        assert_eq!(fail(&mut log, at(1), "renew", 1), 1);
        assert!(log.reached(at(9), 8 * SECOND).is_some());
        let renew = &of_many("renew");
        assert!(!log.ended(at(10), at(8), renew, Some(&error)));
        let news = log.tick(at(15));
        assert!(news.failing.is_none() && news.over.is_none());
        // One that was sent afterwards does.
        assert!(log.ended(at(16), at(9), renew, Some(&error)));
    }

    #[test]
    fn a_few_pass_in_each_window_and_the_others_are_counted() {
        let mut few = Limit::new(5, 10 * SECOND);
        assert_eq!((0..100).filter(|_| few.admits(at(1))).count(), 5);
        assert_eq!((few.take_others(), few.take_others()), (95, 0));
        assert!(!few.admits(at(10)) && few.admits(at(11)));
    }
}
