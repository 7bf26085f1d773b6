use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold_core::{Clock, Instant, Mutex, backoff, store::Withdraw};
use leasehold_watchdog::Key;
use tokio::select;

use crate::{cohort::unheard, release::Outcome, timing::Timing};

use super::{
    core::Engine,
    sending::{Job, Sending},
};

/// Withdrawals that the server has not answered within a ttl.
///
/// A server that stands still may have an abandoned acquire in a buffer, and grants the lock when
/// it goes on. So a withdrawal ends with an answer, however long the outage is. While the server
/// does not answer, one of them is sent at a time; after an answer, all others are.
#[derive(Debug, Default)]
// ADR 0005
pub(super) struct Backlog(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    late: VecDeque<Late>,
    has_task: bool,
}

#[derive(Debug)]
pub(super) struct Late {
    pub(super) key: Key,
    pub(super) job: Job,
    /// When it is given up.
    pub(super) until: Instant,
}

impl Backlog {
    pub(super) const LONGEST: Duration = Duration::from_secs(3600);
    /// How many wait at most. The oldest stay: later acquires of an outage mostly were not sent.
    const MAX: usize = 16 * 1024;
    /// How many are sent after one answer, before another has to show that the server is there.
    const AT_ONCE: usize = 1024;

    /// Adds a withdrawal; whether a task has to be started for it, `None` when there are too many.
    fn add(&self, late: Late) -> Option<bool> {
        let mut waiting = self.0.lock();
        if waiting.late.len() >= Self::MAX {
            return None;
        }
        waiting.late.push_back(late);
        Some(!std::mem::replace(&mut waiting.has_task, true))
    }

    /// The next one to send; if there is none, the task ends.
    fn next(&self) -> Option<InHand<'_>> {
        let mut waiting = self.0.lock();
        let next = waiting.late.pop_front();
        waiting.has_task = next.is_some();
        next.map(|late| InHand { backlog: self, late: Some(late) })
    }

    fn take(&self) -> VecDeque<Late> {
        let mut waiting = self.0.lock();
        let rest = waiting.late.len().min(Self::AT_ONCE);
        waiting.late.drain(..rest).collect()
    }
}

/// A withdrawal that is being sent. If its task dies, it goes back, and another task will send it.
struct InHand<'a> {
    backlog: &'a Backlog,
    late: Option<Late>,
}

impl InHand<'_> {
    /// It was answered, or its time is over.
    fn take(mut self) -> Option<Late> {
        self.late.take()
    }

    /// It was not answered, and goes behind the others: its lock may be the only one that fails.
    fn put_back(mut self) {
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

impl Engine {
    /// Keeps a withdrawal; `false` when there are too many, or its time is over.
    pub(super) fn postpone(&self, late: Late) -> bool {
        if self.clock.now() >= late.until {
            return false;
        }
        let key = late.key;
        let Some(needs_task) = self.backlog.add(late) else { return false };
        self.pending.on_postponed(key);
        if needs_task {
            let (engine, clock) = (Weak::clone(&self.me), Arc::clone(&self.clock));
            self.spawn(send_late(engine, clock));
        }
        true
    }

    /// Sends one, and all others if it is answered; `None` when it is, otherwise the longest pause
    /// before the next copy.
    async fn send_one_late(self: &Arc<Self>, in_hand: InHand<'_>) -> Option<Duration> {
        let now = self.clock.now();
        let Late { job, until, .. } = in_hand.late.as_ref()?;
        if now >= *until {
            self.end_late(in_hand.take()?, Outcome::Unconfirmed);
            return None;
        }
        let Job { name, id, ttl, .. } = job;
        let deadline = now + self.timing.command_deadline(*ttl);
        let withdraw = Withdraw { name: name.clone(), id: *id };
        let answer = select! {
            biased;
            answer = self.store.ask(now, withdraw, deadline) => answer,
            () = self.clock.sleep_until(deadline + Sending::GRACE) => Err(unheard()),
        };
        let outcome = match self.counted(answer) {
            Ok(answer) if answer.ended_grant => Outcome::Released,
            Ok(_) => Outcome::Gone,
            Err(error) if error.kind().is_transient() => {
                let longest = self.timing.heartbeat_pause(*ttl);
                in_hand.put_back();
                return Some(longest);
            }
            Err(_) => Outcome::Unconfirmed,
        };
        self.end_late(in_hand.take()?, outcome);
        for late in self.backlog.take() {
            let sending = Sending::again(self, late);
            self.spawn(async move { drop(sending.run().await) });
        }
        None
    }

    fn end_late(&self, Late { key, job, .. }: Late, outcome: Outcome) {
        self.with(&job.name, |member, env| member.cohort.on_withdrawn(env, job.id));
        job.count(outcome);
        self.pending.done(key, outcome);
    }
}

/// Sends the withdrawals that wait, until there are none. It does not keep the engine alive.
async fn send_late(engine: Weak<Engine>, clock: Arc<dyn Clock>) {
    let mut failures = 0;
    loop {
        let pause = {
            let Some(engine) = engine.upgrade() else { return };
            let Some(in_hand) = engine.backlog.next() else { return };
            let Some(longest) = engine.send_one_late(in_hand).await else {
                failures = 0;
                continue;
            };
            let jitter = engine.entropy.fraction();
            backoff(Timing::SHORTEST_PAUSE, longest, failures, jitter)
        };
        failures += 1;
        clock.sleep_until(clock.now() + pause).await;
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{AcquisitionId, Class, LockName, RuntimeId, Ttl, metric::Metrics};
    use leasehold_watchdog::Slots;
    use uuid::Uuid;

    use super::*;

    fn late(number: u64) -> Late {
        let name = LockName::new("orders/42").unwrap();
        let metrics = Metrics::default().class(&Class::default());
        let id = AcquisitionId::new(RuntimeId::new(Uuid::nil()), number);
        let (now, ttl) = (Instant::default(), Ttl::default());
        let job = Job::withdrawal(now, &name, &metrics, id, ttl);
        Late { key: Slots::default().insert(()), job, until: now + Backlog::LONGEST }
    }

    #[test]
    fn it_is_bounded_and_keeps_the_oldest() {
        let backlog = Backlog::default();
        let max = Backlog::MAX as u64;
        for number in 0..max {
            assert_eq!(backlog.add(late(number)), Some(number == 0), "one task is enough");
        }
        assert_eq!(backlog.add(late(max)), None);
        let next = backlog.next().unwrap();
        assert_eq!(next.late.as_ref().unwrap().job.id.number(), 0);
        next.put_back();
        let others = backlog.take();
        assert_eq!((others.len(), others[0].job.id.number()), (Backlog::AT_ONCE, 1));
    }

    #[test]
    fn its_task_ends_when_nothing_waits() {
        let backlog = Backlog::default();
        assert!(backlog.add(late(1)).unwrap());
        let end = |next: Option<InHand<'_>>| next.and_then(InHand::take).is_some();
        assert!(end(backlog.next()));
        assert!(!backlog.add(late(2)).unwrap(), "the task still runs");
        assert!(end(backlog.next()) && !end(backlog.next()));
        assert!(backlog.add(late(3)).unwrap());
    }

    #[test]
    fn a_withdrawal_outlives_the_task_that_sends_it() {
        let backlog = Backlog::default();
        assert!(backlog.add(late(1)).unwrap());
        drop(backlog.next());
        assert!(backlog.add(late(2)).unwrap(), "another task is needed");
        assert_eq!(backlog.take().len(), 2);
    }
}
