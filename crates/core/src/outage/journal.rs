use std::{collections::BTreeMap, time::Duration};

use crate::{
    clock::Instant,
    lease::LossReason,
    store::StoreError,
    types::{AcquisitionId, FenceToken, LockName},
};

/// Which lines the log gets, as a pure function of time and events.
///
/// The first failure of a row is logged with its command, the others are counted and logged at each
/// [`tick`](Self::tick). A row ends when an outage ends, or with a tick if the last command
/// succeeded and no failure is unlogged. A command that was sent before that end, and fails after
/// it, begins no new row. A few losses are logged one by one, the others as a number.
#[derive(Debug, Default)]
pub(super) struct Journal {
    row: Option<Row>,
    /// When a row was begun in the log last.
    began_at: Option<Instant>,
    /// When the last row ended.
    ended_at: Option<Instant>,
    losses: Few,
    regressions: Few,
}

/// Failures one after another.
#[derive(Debug, Default)]
struct Row {
    /// Whether a line of the log was about it.
    logged: bool,
    /// How many commands failed.
    failed: u64,
    /// How many of them failed since the last line, by kind.
    news: BTreeMap<&'static str, u64>,
    last_error: Option<StoreError>,
    /// How many leases were lost since its beginning.
    lost: u64,
    /// How long the longest outage was that ended in it.
    longest: Duration,
}

impl Journal {
    /// The end of an outage shorter than this is not logged at once, but with the next tick.
    const BLIP: Duration = Duration::from_secs(1);
    /// A row that begins sooner after another one is logged with the next tick.
    const PAUSE: Duration = Duration::from_secs(5);

    /// A command failed at `now` that was sent at `sent_at`.
    pub(super) fn failed<'a>(
        &mut self,
        now: Instant,
        sent_at: Instant,
        subject: &'a Subject,
        error: &'a StoreError,
    ) -> Option<Line<'a>> {
        let is_new = self.row.is_none();
        let is_stale = || self.ended_at.is_some_and(|ended_at| sent_at < ended_at);
        if is_new && (subject.is_probe() || is_stale()) {
            // It was sent during a row that is over, or it is a probe.
            return None;
        }
        let row = self.row.get_or_insert_default();
        row.failed += 1;
        row.last_error = Some(error.clone().for_no_lock());
        let is_late = |at| now.saturating_since(at) >= Self::PAUSE;
        if is_new && self.began_at.is_none_or(is_late) {
            self.began_at = Some(now);
            row.logged = true;
            return Some(Line::FirstFailure(subject, error));
        }
        *row.news.entry(subject.command).or_default() += 1;
        None
    }

    /// The server answers again at `now`, after it was out of reach for so long.
    pub(super) fn reached(
        &mut self,
        now: Instant,
        unreachable_for: Duration,
    ) -> Option<Line<'static>> {
        let row = self.row.as_mut()?;
        row.longest = row.longest.max(unreachable_for);
        if unreachable_for < Self::BLIP {
            return None;
        }
        self.end_row(now)
    }

    pub(super) fn lost<'a>(&mut self, now: Instant, lease: LostLease<'a>) -> Option<Line<'a>> {
        if let Some(row) = &mut self.row {
            row.lost += 1;
        }
        self.losses.admits(now).then_some(Line::Lost(lease))
    }

    /// The fence counter of a lock was seen to have lost data.
    pub(super) fn regressed<'a>(
        &mut self,
        now: Instant,
        lock: &'a LockName,
        fence: FenceToken,
    ) -> Option<Line<'a>> {
        self.regressions.admits(now).then_some(Line::Regressed(lock, fence))
    }

    /// Whether commands have failed since the last line.
    pub(super) fn has_news(&self) -> bool {
        self.row.as_ref().is_some_and(|row| !row.news.is_empty())
    }

    /// Returns the lines of the last few seconds, until `now`.
    ///
    /// `unreachable_for` is `None` when the server answers; `succeeded` says whether the last
    /// command succeeded. Without `at_stake`, failures are kept for the next call.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        unreachable_for: Option<Duration>,
        at_stake: Option<AtStake>,
        succeeded: bool,
    ) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        match (&mut self.row, at_stake) {
            (Some(row), Some(at_stake)) if !row.news.is_empty() => {
                row.logged = true;
                lines.push(Line::Failing {
                    unreachable_for,
                    failed: std::mem::take(&mut row.news),
                    at_stake,
                    lost: row.lost,
                    last_error: row.last_error.clone(),
                });
            }
            (Some(row), _) if succeeded && row.news.is_empty() => lines.extend(self.end_row(now)),
            _ => {}
        }
        let (losses, regressions) = (self.losses.take_others(), self.regressions.take_others());
        lines.extend((losses > 0).then_some(Line::MoreLost(losses)));
        lines.extend((regressions > 0).then_some(Line::MoreRegressed(regressions)));
        lines
    }

    fn end_row(&mut self, now: Instant) -> Option<Line<'static>> {
        self.ended_at = Some(now);
        let Row { logged, failed, lost, longest, .. } = self.row.take()?;
        logged.then_some(Line::Recovered { unreachable_for: longest, failed, lost })
    }
}

/// Lets the first few of many equal events pass, and counts the others.
#[derive(Debug, Default)]
struct Few {
    since: Option<Instant>,
    passed: u32,
    others: u64,
}

impl Few {
    /// How many are let through within a window.
    const MAX: u32 = 5;
    /// The window; it begins with its first event.
    const WINDOW: Duration = Duration::from_secs(10);

    /// Whether an event at `now` is one of the few; otherwise it is counted.
    fn admits(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_since(since) >= Self::WINDOW) {
            self.since = Some(now);
            self.passed = 0;
        }
        let admitted = self.passed < Self::MAX;
        if admitted {
            self.passed += 1;
        } else {
            self.others += 1;
        }
        admitted
    }

    /// How many were counted since the last call.
    fn take_others(&mut self) -> u64 {
        std::mem::take(&mut self.others)
    }
}

/// What one command is about. A batch about several locks names none of them.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The kind of the command, as the log shows it.
    pub command: &'static str,
    /// The lock.
    pub lock: Option<LockName>,
    /// The lease, where there is one already.
    pub lease: Option<AcquisitionId>,
    /// The fence of that lease.
    pub fence: Option<FenceToken>,
}

impl Subject {
    /// The name that is inspected to find out whether the server answers.
    pub const PROBE: &'static str = "leasehold:probe";

    /// Whether the command only asks whether the server answers.
    pub fn is_probe(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.as_str() == Self::PROBE)
    }
}

/// A lease that was lost.
#[derive(Debug, Clone, Copy)]
pub struct LostLease<'a> {
    /// The lock.
    pub lock: &'a LockName,
    /// The lease.
    pub lease: AcquisitionId,
    /// Its fence.
    pub fence: FenceToken,
    /// Why it was lost.
    pub reason: LossReason,
    /// For how long it had been held.
    pub held_for: Duration,
}

/// One line of the log.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// The first failed command of a row.
    FirstFailure(&'a Subject, &'a StoreError),
    /// What failed since the last line, by kind, and how many leases were lost since the first
    /// failure.
    Failing {
        /// How long the server has been out of reach; `None` while it answers.
        unreachable_for: Option<Duration>,
        failed: BTreeMap<&'static str, u64>,
        at_stake: AtStake,
        lost: u64,
        last_error: Option<StoreError>,
    },
    /// Commands fail no longer.
    Recovered {
        /// How long the server was out of reach; zero where it only refused.
        unreachable_for: Duration,
        failed: u64,
        lost: u64,
    },
    /// A lease was lost.
    Lost(LostLease<'a>),
    /// So many more were lost, without a line of their own.
    MoreLost(u64),
    /// The fence counter of a lock had lost data.
    Regressed(&'a LockName, FenceToken),
    /// The counters of so many more locks had, without a line of their own.
    MoreRegressed(u64),
}

/// What depends on the server now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtStake {
    /// Leases that are held: each is lost at the end of its ttl if it is not renewed.
    pub leases: usize,
    /// Acquires that wait.
    pub waiting: usize,
}

impl Line<'_> {
    pub(super) fn write(&self) {
        match self {
            Self::FirstFailure(Subject { command, lock, lease, fence }, error) => {
                let what = if error.is_answer() {
                    "the server refused a command"
                } else {
                    "a command was not answered, or could not be sent"
                };
                tracing::warn!(
                    command,
                    lock = lock.as_ref().map(tracing::field::display),
                    lease = lease.map(tracing::field::display),
                    fence = fence.map(tracing::field::display),
                    %error,
                    "{what}"
                );
            }
            Self::Failing { unreachable_for, failed, at_stake, lost, last_error } => {
                let AtStake { leases, waiting } = at_stake;
                let what = if unreachable_for.is_none() {
                    "commands fail; the server answers others"
                } else {
                    "the server does not answer"
                };
                tracing::warn!(
                    unreachable_for =
                        unreachable_for.map(|time| tracing::field::debug(tenths(time))),
                    failed = numbers(failed),
                    leases_at_risk = leases,
                    acquires_waiting = waiting,
                    leases_lost = lost,
                    error = last_error.as_ref().map(tracing::field::display),
                    "{what}"
                );
            }
            Self::Recovered { unreachable_for, failed, lost } => {
                let what = if unreachable_for.is_zero() {
                    "commands no longer fail"
                } else {
                    "the server answers again"
                };
                tracing::info!(
                    unreachable_for = ?tenths(*unreachable_for),
                    failed,
                    leases_lost = lost,
                    "{what}"
                );
            }
            Self::Lost(LostLease { lock, lease, fence, reason, held_for }) => tracing::warn!(
                %lock, %lease, %fence, held_for = ?tenths(*held_for),
                "lease lost: {reason}"
            ),
            Self::MoreLost(leases) => tracing::warn!(leases, "more leases lost"),
            Self::Regressed(lock, fence) => tracing::error!(
                %lock, %fence,
                "the server's fence counter was behind what this process had seen: the server lost data, \
                 or another one is at its address; the new fence is above both"
            ),
            Self::MoreRegressed(locks) => {
                tracing::error!(
                    locks,
                    "more fence counters were behind what this process had seen"
                );
            }
        }
    }
}

/// Numbers of commands, as in `1 acquire, 2 renew`.
pub(super) fn numbers(failed: &BTreeMap<&str, u64>) -> String {
    let number = |(kind, count): (&&str, &u64)| format!("{count} {kind}");
    failed.iter().map(number).collect::<Vec<_>>().join(", ")
}

/// A time in tenths of a second, which is exact enough for a reader.
fn tenths(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis() / 100 * 100).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lease::LossReason,
        store::StoreErrorKind,
        types::{AcquisitionId, RuntimeId},
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Instant {
        Instant::at(SECOND * seconds)
    }

    fn error() -> StoreError {
        StoreError::new(StoreErrorKind::Definite, "refused", "look there")
    }

    fn of_many(command: &'static str) -> Subject {
        Subject { command, lock: None, lease: None, fence: None }
    }

    fn fail(journal: &mut Journal, now: Instant, kind: &'static str, times: u64) -> usize {
        let error = error();
        let subject = of_many(kind);
        let logged = |_| journal.failed(now, now, &subject, &error).is_some();
        (0..times).map(logged).filter(|logged| *logged).count()
    }

    fn failing(lines: &[Line<'_>]) -> (String, u64) {
        let [Line::Failing { failed, lost, .. }] = lines else { panic!("{lines:?}") };
        (numbers(failed), *lost)
    }

    #[test]
    fn an_outage_is_a_first_line_a_summary_each_tick_and_an_end() {
        let mut journal = Journal::default();
        assert_eq!(fail(&mut journal, at(1), "renew", 1000), 1);
        let at_stake = AtStake { leases: 1000, waiting: 7 };
        let lines = journal.tick(at(5), Some(4 * SECOND), Some(at_stake), false);
        assert_eq!(failing(&lines), ("999 renew".into(), 0));
        assert_eq!(fail(&mut journal, at(6), "acquire", 3), 0);
        let name = LockName::new("a").unwrap();
        let lease = LostLease {
            lock: &name,
            lease: AcquisitionId::new(RuntimeId::new(uuid::Uuid::nil()), 1),
            fence: FenceToken::try_from(1u64).unwrap(),
            reason: LossReason::Expired,
            held_for: SECOND,
        };
        let logged = (0..1000).filter(|_| journal.lost(at(7), lease).is_some()).count();
        assert_eq!(logged, 5);
        let lines = journal.tick(at(10), Some(9 * SECOND), Some(at_stake), false);
        let [Line::Failing { lost, at_stake: shown, .. }, Line::MoreLost(995)] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!((*lost, *shown), (1000, at_stake));
        assert!(journal.tick(at(15), Some(14 * SECOND), Some(at_stake), false).is_empty());
        let Some(Line::Recovered { unreachable_for, failed, lost }) =
            journal.reached(at(16), 15 * SECOND)
        else {
            panic!()
        };
        assert_eq!((unreachable_for, failed, lost), (15 * SECOND, 1003, 1000));
        assert!(journal.tick(at(20), None, Some(at_stake), false).is_empty());
    }

    #[test]
    fn a_flapping_server_costs_a_line_a_tick() {
        let (mut journal, mut lines) = (Journal::default(), 0);
        for tick in 0..10 {
            for blip in 0..50 {
                let now = at(tick * 5) + SECOND / 10 * blip;
                lines += fail(&mut journal, now, "heartbeat", 2);
                lines += usize::from(journal.reached(now, SECOND / 20).is_some());
            }
            lines += journal.tick(at(tick * 5 + 5), None, Some(AtStake::default()), true).len();
        }
        assert_eq!(lines, 11);
        let lines = journal.tick(at(55), None, Some(AtStake::default()), true);
        assert!(matches!(lines[..], [Line::Recovered { .. }]), "{lines:?}");
    }

    #[test]
    fn a_server_that_nobody_asks_is_not_said_to_answer_again() {
        let mut journal = Journal::default();
        assert_eq!(fail(&mut journal, at(1), "renew", 1), 1);
        assert!(journal.tick(at(5), None, Some(AtStake::default()), false).is_empty());
        assert_eq!(fail(&mut journal, at(60), "release", 1), 0);
        assert_eq!(
            failing(&journal.tick(at(65), None, Some(AtStake::default()), false)),
            ("1 release".into(), 0)
        );
        assert_eq!(journal.tick(at(70), None, Some(AtStake::default()), true).len(), 1);
    }

    #[test]
    fn a_failure_after_the_look_at_what_is_at_stake_waits_for_the_next_tick() {
        let mut journal = Journal::default();
        assert_eq!(fail(&mut journal, at(1), "renew", 2), 1);
        assert!(journal.tick(at(5), None, None, true).is_empty());
        let lines = journal.tick(at(10), None, Some(AtStake { leases: 7, waiting: 2 }), true);
        let [Line::Failing { at_stake, .. }] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(*at_stake, AtStake { leases: 7, waiting: 2 });
    }

    #[test]
    fn a_row_that_nobody_heard_of_ends_in_silence() {
        let mut journal = Journal::default();
        assert_eq!(fail(&mut journal, at(1), "renew", 1), 1);
        assert!(journal.reached(at(3), 2 * SECOND).is_some());
        assert_eq!(fail(&mut journal, at(4), "renew", 1), 0);
        assert!(journal.reached(at(6), 2 * SECOND).is_none());
        assert_eq!(fail(&mut journal, at(6), "renew", 1), 1);
    }

    #[test]
    fn a_failure_of_a_row_that_is_over_begins_no_other() {
        let (mut journal, error) = (Journal::default(), error());
        assert_eq!(fail(&mut journal, at(1), "renew", 1), 1);
        let renew = &of_many("renew");
        assert!(journal.reached(at(9), 8 * SECOND).is_some());
        assert!(journal.failed(at(10), at(8), renew, &error).is_none());
        assert!(journal.tick(at(15), None, Some(AtStake::default()), false).is_empty());
        // One that was sent afterwards does.
        assert!(journal.failed(at(16), at(9), renew, &error).is_some());
    }

    #[test]
    fn a_few_pass_in_each_window_and_the_others_are_counted() {
        let mut few = Few::default();
        assert_eq!((0..100).filter(|_| few.admits(at(1))).count(), 5);
        assert_eq!((few.take_others(), few.take_others()), (95, 0));
        assert!(!few.admits(at(10)) && few.admits(at(11)));
    }
}
