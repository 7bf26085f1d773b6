use std::{collections::VecDeque, mem};

use leasehold_core::Mutex;
use leasehold_watchdog::Key;

use super::delivery::Delivery;

/// Withdrawals that the server has not answered within a ttl.
///
/// A server that stands still may have an abandoned acquire in a buffer, and grants the lock when
/// it goes on. So a withdrawal ends with an answer, however long the outage is. While the server
/// does not answer, one of them is sent at a time; after an answer, all others are.
#[derive(Debug, Default)]
pub(super) struct Backlog(Mutex<LateWithdrawals>);

#[derive(Debug, Default)]
struct LateWithdrawals {
    late: VecDeque<(Key, Delivery)>,
    has_task: bool,
}

impl Backlog {
    /// How many wait at most. The oldest stay: later acquires of an outage mostly were not sent.
    const MAX: usize = 16 * 1024;
    /// How many are sent after one answer, before another has to show that the server is there.
    const AT_ONCE: usize = 1024;

    /// Adds a withdrawal; whether a task has to be started for it, `None` when there are too many.
    pub(super) fn add(&self, key: Key, withdrawal: Delivery) -> Option<bool> {
        let mut waiting = self.0.lock();
        if waiting.late.len() >= Self::MAX {
            return None;
        }
        waiting.late.push_back((key, withdrawal));
        Some(!mem::replace(&mut waiting.has_task, true))
    }

    /// The next one to send; if there is none, the task ends.
    pub(super) fn next(&self) -> Option<InHand<'_>> {
        let mut waiting = self.0.lock();
        let next = waiting.late.pop_front();
        waiting.has_task = next.is_some();
        next.map(|late| InHand { backlog: self, late: Some(late) })
    }

    /// The server answers: those that are sent now.
    pub(super) fn take(&self) -> VecDeque<(Key, Delivery)> {
        let mut waiting = self.0.lock();
        let rest = waiting.late.len().min(Self::AT_ONCE);
        waiting.late.drain(..rest).collect()
    }
}

/// A withdrawal that is being sent. If its task dies, it goes back, and another task will send it.
pub(super) struct InHand<'a> {
    backlog: &'a Backlog,
    late: Option<(Key, Delivery)>,
}

impl InHand<'_> {
    pub(super) fn withdrawal(&self) -> Option<&Delivery> {
        self.late.as_ref().map(|(_, withdrawal)| withdrawal)
    }

    /// It was answered, or its time is over.
    pub(super) fn take(mut self) -> Option<(Key, Delivery)> {
        self.late.take()
    }

    /// It was not answered, and goes behind the others: its lock may be the only one that fails.
    pub(super) fn put_back(mut self) {
        self.backlog.0.lock().late.extend(self.late.take());
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        if let Some(late) = self.late.take() {
            let mut waiting = self.backlog.0.lock();
            waiting.late.push_back(late);
            waiting.has_task = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{
        AcquisitionId, Class, Instant, LockName, RuntimeId, Ttl, metric::Metrics,
    };
    use leasehold_watchdog::Slots;
    use uuid::Uuid;

    use super::*;

    fn late(number: u64) -> Delivery {
        let name = LockName::new("orders/42").unwrap();
        let metrics = Metrics::default().class(&Class::default());
        let id = AcquisitionId::new(RuntimeId::new(Uuid::nil()), number);
        let (now, ttl) = (Instant::default(), Ttl::default());
        Delivery::withdrawal(now, &name, &metrics, id, ttl)
    }

    fn add(backlog: &Backlog, number: u64) -> Option<bool> {
        backlog.add(Slots::default().insert(()), late(number))
    }

    #[test]
    fn it_is_bounded_and_keeps_the_oldest() {
        let backlog = Backlog::default();
        let max = Backlog::MAX as u64;
        for number in 0..max {
            assert_eq!(add(&backlog, number), Some(number == 0), "one task is enough");
        }
        assert_eq!(add(&backlog, max), None);
        let next = backlog.next().unwrap();
        assert_eq!(next.withdrawal().unwrap().id.number(), 0);
        next.put_back();
        let others = backlog.take();
        assert_eq!((others.len(), others[0].1.id.number()), (Backlog::AT_ONCE, 1));
    }

    #[test]
    fn its_task_ends_when_nothing_waits() {
        let backlog = Backlog::default();
        assert!(add(&backlog, 1).unwrap());
        let end = |next: Option<InHand<'_>>| next.and_then(InHand::take).is_some();
        assert!(end(backlog.next()));
        assert!(!add(&backlog, 2).unwrap(), "the task still runs");
        assert!(end(backlog.next()) && !end(backlog.next()));
        assert!(add(&backlog, 3).unwrap());
    }

    #[test]
    fn a_withdrawal_outlives_the_task_that_sends_it() {
        let backlog = Backlog::default();
        assert!(add(&backlog, 1).unwrap());
        drop(backlog.next());
        assert!(add(&backlog, 2).unwrap(), "another task is needed");
        assert_eq!(backlog.take().len(), 2);
    }
}
