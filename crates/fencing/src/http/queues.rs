use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use leasehold_core::{Fence, Mutex, Stamp};
use tokio::{
    select,
    sync::{self, watch},
};

use crate::gate::{Verdict, judge};

/// One queue per resource; the requests in a queue run one after another, in the order of arrival.
///
/// A queue exists while a request is in it, so there are never more queues than requests.
#[derive(Debug, Default)]
// ADR 0044
pub(super) struct ResourceQueues(Mutex<HashMap<Arc<str>, ResourceQueue>>);

/// The requests for one resource.
#[derive(Debug, Default)]
struct ResourceQueue {
    fences: Vec<Fence>,
    turns: Arc<Turns>,
}

/// What the requests in a queue wait for.
#[derive(Debug, Default)]
struct Turns {
    /// Locked by the request that has its turn.
    turn: sync::Mutex<()>,
    /// The highest stamp that the gate has reported to a request in the queue. It is forgotten with
    /// the queue, which no refused request enters: so a watermark that an operator sets back takes
    /// effect.
    highest: watch::Sender<Option<Stamp>>,
}

impl ResourceQueues {
    /// Enters the queue of a resource; fails with a newer stamp that the gate has admitted already.
    pub(super) fn enter(
        self: &Arc<Self>,
        resource: &str,
        presented: Stamp,
    ) -> Result<QueuedRequest, Stamp> {
        let resource: Arc<str> = resource.into();
        let mut queues = self.0.lock();
        let ResourceQueue { fences, turns } = queues.entry(Arc::clone(&resource)).or_default();
        // A new queue knows no stamp, so it refuses none and does not stay empty.
        let highest = *turns.highest.borrow();
        if let Verdict::Refuse { highest } = judge(highest, presented) {
            return Err(highest);
        }
        let ahead = fences.iter().filter(|fence| **fence >= presented.fence).count();
        let newest = fences.iter().copied().chain(highest.map(|told| told.fence)).max();
        let outranks = newest.is_some_and(|newest| newest < presented.fence);
        fences.push(presented.fence);
        let (queues, turns) = (Arc::clone(self), Arc::clone(turns));
        Ok(QueuedRequest { queues, turns, resource, presented, ahead, outranks })
    }

    /// How many resources have a request in their queue.
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// A place in the queue of a resource; dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    queues: Arc<ResourceQueues>,
    turns: Arc<Turns>,
    pub(super) resource: Arc<str>,
    pub(super) presented: Stamp,
    /// How many requests in the queue had this fence or a newer one when this request entered.
    /// Older ones do not count, so a former holder cannot fill the queue of the new one.
    pub(super) ahead: usize,
    /// Whether the stamp was newer than all others in the queue when the request entered, and than
    /// the reported one: its lease has taken over from theirs.
    pub(super) outranks: bool,
}

/// The turn of a request; dropping it passes the turn on.
pub(super) type RequestTurn<'a> = sync::MutexGuard<'a, ()>;

impl QueuedRequest {
    /// Waits for the turn of the request, in the order in which requests began to wait; fails with
    /// a newer stamp that the gate has admitted meanwhile. Dropping the future gives up the turn,
    /// and keeps the place.
    pub(super) async fn turn(&self) -> Result<RequestTurn<'_>, Stamp> {
        let mut told = self.turns.highest.subscribe();
        let newer = async {
            loop {
                if let Verdict::Refuse { highest } =
                    judge(*told.borrow_and_update(), self.presented)
                {
                    return highest;
                }
                // It does not fail: this place has the sender, too.
                let _ = told.changed().await;
            }
        };
        select! {
            biased;
            highest = newer => Err(highest),
            turn = self.turns.turn.lock() => Ok(turn),
        }
    }

    /// Tells the requests in the queue of a stamp that the gate has reported.
    pub(super) fn seen(&self, stamp: Stamp) {
        self.turns.highest.send_if_modified(|highest| {
            let is_newer = highest.is_none_or(|highest| highest.fence < stamp.fence);
            if is_newer {
                *highest = Some(stamp);
            }
            is_newer
        });
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        if let Entry::Occupied(mut queue) = self.queues.0.lock().entry(Arc::clone(&self.resource)) {
            let fences = &mut queue.get_mut().fences;
            if let Some(at) = fences.iter().position(|fence| *fence == self.presented.fence) {
                fences.swap_remove(at);
            }
            if fences.is_empty() {
                queue.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use leasehold_testing::stamp;

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn enter(queues: &Arc<ResourceQueues>, resource: &str, fence: u64) -> QueuedRequest {
        queues.enter(resource, stamp(fence, fence)).unwrap()
    }

    fn has_turn(turn: &Poll<Result<RequestTurn<'_>, Stamp>>) -> bool {
        matches!(turn, Poll::Ready(Ok(_)))
    }

    #[test]
    fn a_queue_lasts_while_somebody_is_in_it() {
        let queues = Arc::new(ResourceQueues::default());
        let (first, second) = (enter(&queues, "a", 5), enter(&queues, "a", 5));
        let turn = poll(pin!(first.turn()));
        let mut next = Box::pin(second.turn());
        assert!(has_turn(&turn) && poll(next.as_mut()).is_pending());
        let other = enter(&queues, "b", 5);
        assert!(has_turn(&poll(pin!(other.turn()))));
        assert_eq!(queues.len(), 2);

        drop(turn);
        assert!(has_turn(&poll(next.as_mut())));
        drop(next);
        drop((first, second, other));
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn turns_go_by_the_order_of_waiting() {
        let queues = Arc::new(ResourceQueues::default());
        let places = [5; 4].map(|fence| enter(&queues, "a", fence));
        let [first, third, second, gone] = &places;
        let turn = poll(pin!(first.turn()));
        let (mut second, mut third) = (pin!(second.turn()), pin!(third.turn()));
        assert!(has_turn(&turn));
        {
            let mut gone = pin!(gone.turn());
            assert!(poll(gone.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        }
        assert!(poll(third.as_mut()).is_pending());
        drop(turn);
        assert!(poll(third.as_mut()).is_pending());
        let turn = poll(second);
        assert!(has_turn(&turn));
        drop(turn);
        assert!(has_turn(&poll(third)));
    }

    #[test]
    fn one_that_does_not_wait_yet_holds_nobody_up() {
        let queues = Arc::new(ResourceQueues::default());
        let places = [5; 3].map(|fence| enter(&queues, "a", fence));
        let [first, tells, third] = &places;
        let (turn, mut next) = (poll(pin!(first.turn())), pin!(third.turn()));
        assert!(has_turn(&turn) && poll(next.as_mut()).is_pending());
        drop(turn);
        let turn = poll(next);
        let mut told = pin!(tells.turn());
        assert!(has_turn(&turn) && poll(told.as_mut()).is_pending());
        drop(turn);
        assert!(has_turn(&poll(told)));
    }

    #[test]
    fn older_ones_are_not_ahead_of_a_newer_one() {
        let queues = Arc::new(ResourceQueues::default());
        let older = [enter(&queues, "a", 5), enter(&queues, "a", 5)];
        let newer = enter(&queues, "a", 6);
        assert!(newer.outranks && !older[1].outranks);
        let same = enter(&queues, "a", 6);
        assert!(!same.outranks, "the gate is told once");
        assert_eq!([&older[0], &older[1], &newer, &same].map(|place| place.ahead), [0, 1, 0, 1]);
        assert_eq!([5, 6, 7].map(|fence| enter(&queues, "a", fence).ahead), [4, 2, 0]);
        drop((older, newer, same));
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn a_newer_stamp_sends_away_those_that_wait_with_an_older_one() {
        let queues = Arc::new(ResourceQueues::default());
        let places = [5, 5, 6].map(|fence| enter(&queues, "a", fence));
        let [first, older, newer] = &places;
        let turn = poll(pin!(first.turn()));
        let (mut older, mut newer) = (pin!(older.turn()), pin!(newer.turn()));
        assert!(poll(older.as_mut()).is_pending() && poll(newer.as_mut()).is_pending());
        first.seen(stamp(6, 6));
        assert!(matches!(poll(older), Poll::Ready(Err(highest)) if highest == stamp(6, 6)));
        assert!(poll(newer.as_mut()).is_pending());
        drop(turn);
        assert!(has_turn(&poll(newer)));
    }

    #[test]
    fn what_the_gate_has_seen_is_known_while_the_queue_lasts() {
        let queues = Arc::new(ResourceQueues::default());
        let (first, waits) = (enter(&queues, "a", 5), enter(&queues, "a", 5));
        first.seen(stamp(7, 7));
        first.seen(stamp(6, 6));
        assert!(
            matches!(poll(pin!(waits.turn())), Poll::Ready(Err(highest)) if highest == stamp(7, 7))
        );
        for presented in [stamp(6, 6), stamp(7, 8)] {
            assert_eq!(queues.enter("a", presented).unwrap_err(), stamp(7, 7));
        }
        assert!(queues.enter("a", stamp(7, 7)).is_ok());
        drop((first, waits));
        assert!(queues.enter("a", stamp(6, 6)).is_ok());
    }
}
