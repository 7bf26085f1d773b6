use std::{collections::BTreeMap, time::Duration};

use crate::{
    clock::Instant,
    store::{Command, StoreError},
    types::{AcquisitionId, Fence, LockName},
};

/// Which lines the log gets, as a pure function of time and events.
///
/// Commands *fail in a row* from a first failure on, until an outage ends, or until a
/// [`tick`](Self::tick) at which the last command has succeeded and every failure is in the log. The
/// first failure has a line of its own, unless there was one in the last seconds. The others share a
/// line at each tick. One more line tells the end. A command that was sent before that end and fails
/// after it begins no new row.
#[derive(Debug, Default)]
pub(super) struct OutageLog {
    failures: Option<Failures>,
    /// When commands stopped failing.
    ended_at: Option<Instant>,
    /// Whether the last command has succeeded.
    pub(super) succeeded: bool,
    first_failures: Limit<1, 5>,
    pub(super) losses: Limit<5, 10>,
    pub(super) regressions: Limit<5, 10>,
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

impl OutageLog {
    /// A command of `sent_at` failed at `now`. Returns whether that has a line of its own.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        sent_at: Instant,
        subject: &Subject,
        error: &StoreError,
    ) -> bool {
        self.succeeded = false;
        let begins = self.failures.is_none();
        let is_late = self.ended_at.is_some_and(|ended_at| sent_at < ended_at);
        if begins && is_late {
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

    /// The server answers again at `now`, after an outage since then; yields what the log is to tell the
    /// end of.
    pub(super) fn reached(&mut self, now: Instant, since: Instant) -> Option<Failures> {
        let (failures, outage) = (self.failures.as_mut()?, now.saturating_since(since));
        failures.longest_outage = failures.longest_outage.max(outage);
        // The end of a shorter one is not told at once, but with the next summary.
        if outage < Duration::from_secs(1) { None } else { self.end(now) }
    }

    /// A lease was lost. Returns whether that has a line of its own.
    pub(super) fn lost(&mut self, now: Instant) -> bool {
        if let Some(failures) = &mut self.failures {
            failures.lost += 1;
        }
        self.losses.admits(now)
    }

    /// The failures since the last call, or all those that are over, if they are news.
    pub(super) fn tick(&mut self, now: Instant) -> (Option<Failures>, Option<Failures>) {
        match &mut self.failures {
            Some(failures) if !failures.news.is_empty() => {
                failures.is_logged = true;
                let failing = failures.clone();
                failures.news.clear();
                (Some(failing), None)
            }
            Some(_) if self.succeeded => (None, self.end(now)),
            _ => (None, None),
        }
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
    pub(super) fn log(&self, unreachable_for: Option<Duration>, leases: usize, waiting: usize) {
        let what = match unreachable_for {
            None => "commands fail; the server answers others",
            Some(_) if self.is_ours() => "this process does not reach the server",
            Some(_) => "the server does not answer",
        };
        tracing::warn!(
            unreachable_for = unreachable_for.map(|time| tracing::field::debug(tenths(time))),
            failed = self.by_kind(),
            leases_at_risk = leases,
            acquires_waiting = waiting,
            leases_lost = self.lost,
            error = self.last_error.as_ref().map(tracing::field::display),
            "{what}"
        );
    }

    /// Logs that commands fail no longer.
    pub(super) fn log_end(&self) {
        let outage = self.longest_outage;
        let what = match outage.is_zero() {
            true => "commands no longer fail",
            false if self.is_ours() => "this process reaches the server again",
            false => "the server answers again",
        };
        tracing::info!(
            unreachable_for = ?tenths(outage),
            failed = self.failed,
            leases_lost = self.lost,
            "{what}"
        );
    }

    /// Whether the last of them was the fault of this process.
    fn is_ours(&self) -> bool {
        self.last_error.as_ref().is_some_and(StoreError::is_ours)
    }

    /// Numbers of commands, as in `1 acquire, 2 renew`.
    fn by_kind(&self) -> String {
        let numbers = self.news.iter().map(|(kind, count)| format!("{count} {kind}"));
        numbers.collect::<Vec<_>>().join(", ")
    }
}

/// A time in tenths of a second, which is exact enough for a reader.
pub fn tenths(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis() / 100 * 100).unwrap_or(u64::MAX))
}

/// What one command is about. A batch about several locks names none of them.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// The kind of the command, as the log shows it.
    command: &'static str,
    lock: Option<LockName>,
    /// The lease and its fence, where there is one already.
    lease: Option<(AcquisitionId, Fence)>,
}

impl Subject {
    pub(super) fn of(command: &Command) -> Self {
        let (lock, lease) = match command {
            Command::Acquire(one) => (Some(&one.name), None),
            Command::Withdraw(one) => (Some(&one.name), None),
            Command::Hold(one) => (Some(&one.name), Some((one.id, one.fence))),
            Command::Release(one) => (Some(&one.name), Some((one.id, one.fence))),
            Command::ForceRelease(one) => (Some(&one.name), Some((one.id, one.fence))),
            Command::Heartbeat(all) => (only(&all.batch).map(|one| &one.name), None),
            Command::Inspect(all) => (only(&all.names), None),
            Command::Renew(all) => {
                let one = only(&all.batch);
                (one.map(|one| &one.name), one.map(|one| (one.id, one.fence)))
            }
            Command::Scan(_) => (None, None),
        };
        Self { command: command.word(), lock: lock.cloned(), lease }
    }

    /// A command that only asks whether the server answers.
    pub(super) fn probe() -> Self {
        Self { command: "probe", lock: None, lease: None }
    }

    /// Logs that the command failed: as a warning if that is news, otherwise for debugging.
    pub(super) fn log_failure(&self, error: &StoreError, is_news: bool) {
        macro_rules! log {
            ($level:ident, $what:literal) => {
                tracing::$level!(
                    command = self.command,
                    lock = self.lock.as_ref().map(tracing::field::display),
                    lease = self.lease.map(|(id, _)| tracing::field::display(id)),
                    fence = self.lease.map(|(_, fence)| tracing::field::display(fence)),
                    %error,
                    $what
                )
            };
        }
        match (is_news, error.is_answer()) {
            (false, _) => log!(debug, "a command failed"),
            (true, true) => log!(warn, "the server refused a command"),
            (true, false) => log!(warn, "a command was not answered, or could not be sent"),
        }
    }
}

fn only<T>(batch: &[T]) -> Option<&T> {
    if let [one] = batch { Some(one) } else { None }
}

/// Lets the first `MOST` of many equal events pass within `SECONDS`, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Limit<const MOST: u32, const SECONDS: u64> {
    /// When the present window began, with its first event.
    since: Option<Instant>,
    passed: u32,
    others: u64,
}

impl<const MOST: u32, const SECONDS: u64> Limit<MOST, SECONDS> {
    /// Whether an event at `now` is one of the few; otherwise it is counted.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        let window = Duration::from_secs(SECONDS);
        if self.since.is_none_or(|since| now.saturating_since(since) >= window) {
            self.since = Some(now);
            self.passed = 0;
        }
        let is_admitted = self.passed < MOST;
        if is_admitted {
            self.passed += 1;
        } else {
            self.others += 1;
        }
        is_admitted
    }

    /// How many events were counted since the last call.
    pub(super) fn take_others(&mut self) -> u64 {
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
        (0..times).filter(|_| log.failed(now, now, &subject, &error)).count()
    }

    #[test]
    fn an_outage_is_a_first_line_a_summary_each_tick_and_an_end() {
        let mut log = OutageLog::default();
        assert_eq!(fail(&mut log, at(1), "renew", 1000), 1);
        let failing = log.tick(at(5)).0.unwrap();
        assert_eq!((failing.by_kind(), failing.lost), ("999 renew".into(), 0));
        assert_eq!(fail(&mut log, at(6), "acquire", 3), 0);
        assert_eq!((0..1000).filter(|_| log.lost(at(7))).count(), 5);
        let (failing, over) = log.tick(at(10));
        let failing = failing.unwrap();
        assert_eq!((failing.by_kind(), failing.lost), ("3 acquire".into(), 1000));
        assert_eq!((log.losses.take_others(), over.is_none()), (995, true));
        assert!(matches!(log.tick(at(15)), (None, None)));
        let over = log.reached(at(16), at(1)).unwrap();
        assert_eq!((over.longest_outage, over.failed, over.lost), (15 * SECOND, 1003, 1000));
        assert!(matches!(log.tick(at(20)), (None, None)));
    }

    #[test]
    fn a_probe_begins_a_row_as_any_other_command_does() {
        let mut log = OutageLog::default();
        assert!(log.failed(at(1), at(1), &Subject::probe(), &error()));
        assert!(!log.failed(at(3), at(2), &Subject::probe(), &error()));
        assert_eq!(log.tick(at(5)).0.unwrap().by_kind(), "1 probe");
        assert_eq!(log.reached(at(7), at(1)).unwrap().failed, 2);
    }

    #[test]
    fn a_flapping_server_costs_a_line_a_tick() {
        let (mut log, mut lines) = (OutageLog::default(), 0);
        for tick in 0..10 {
            for blip in 0..50 {
                let now = at(tick * 5) + SECOND / 10 * blip;
                lines += fail(&mut log, now, "heartbeat", 2);
                log.succeeded = true;
                lines += usize::from(log.reached(now + SECOND / 20, now).is_some());
            }
            let (failing, over) = log.tick(at(tick * 5 + 5));
            lines += usize::from(failing.is_some()) + usize::from(over.is_some());
        }
        assert_eq!(lines, 11);
        assert!(log.tick(at(55)).1.is_some());
    }

    #[test]
    fn a_server_that_nobody_asks_is_not_said_to_answer_again() {
        let mut log = OutageLog::default();
        assert_eq!(fail(&mut log, at(1), "renew", 1), 1);
        assert!(log.tick(at(5)).1.is_none());
        assert_eq!(fail(&mut log, at(60), "release", 1), 0);
        assert_eq!(log.tick(at(65)).0.unwrap().by_kind(), "1 release");
        log.succeeded = true;
        assert!(log.tick(at(70)).1.is_some());
    }

    #[test]
    fn a_row_that_nobody_heard_of_ends_in_silence() {
        let mut log = OutageLog::default();
        assert_eq!(fail(&mut log, at(1), "renew", 1), 1);
        assert!(log.reached(at(3), at(1)).is_some());
        assert_eq!(fail(&mut log, at(4), "renew", 1), 0);
        assert!(log.reached(at(6), at(4)).is_none());
        assert_eq!(fail(&mut log, at(6), "renew", 1), 1);
    }

    #[test]
    fn a_failure_of_a_row_that_is_over_begins_no_other() {
        let (mut log, error) = (OutageLog::default(), error());
        assert_eq!(fail(&mut log, at(1), "renew", 1), 1);
        assert!(log.reached(at(9), at(1)).is_some());
        let renew = &of_many("renew");
        assert!(!log.failed(at(10), at(8), renew, &error));
        assert!(matches!(log.tick(at(15)), (None, None)));
        // One that was sent afterwards does.
        assert!(log.failed(at(16), at(9), renew, &error));
    }

    #[test]
    fn a_few_pass_in_each_window_and_the_others_are_counted() {
        let mut few = Limit::<5, 10>::default();
        assert_eq!((0..100).filter(|_| few.admits(at(1))).count(), 5);
        assert_eq!((few.take_others(), few.take_others()), (95, 0));
        assert!(!few.admits(at(10)) && few.admits(at(11)));
    }
}
