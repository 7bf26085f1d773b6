use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Stamp;

use super::lane::{Entered, Lane, Message, NoPlace, Told, Turn};

/// One lane per resource; the requests in a lane run one after another, in the order of arrival.
///
/// A lane exists while a request is in it, so there are never more lanes than requests. Code that
/// needs both mutexes locks the map first, then the lane.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<Arc<str>, Arc<Mutex<Lane>>>>);

impl Lanes {
    /// Enters the lane of a resource; see [`Lane::enter`].
    pub(super) fn enter(
        self: &Arc<Self>,
        resource: &str,
        presented: Stamp,
        most: usize,
    ) -> Result<Place, NoPlace> {
        let mut lanes = lock(&self.0);
        let resource: Arc<str> = resource.into();
        let (lane, entered) = match lanes.entry(Arc::clone(&resource)) {
            Entry::Occupied(known) => {
                let lane = Arc::clone(known.get());
                let entered = lock(&lane).enter(presented, most)?;
                (lane, entered)
            }
            Entry::Vacant(vacant) => {
                let mut lane = Lane::default();
                let entered = lane.enter(presented, most)?;
                (Arc::clone(vacant.insert(Arc::new(Mutex::new(lane)))), entered)
            }
        };
        Ok(Place { lanes: Arc::clone(self), resource, lane, entered })
    }

    /// How many resources have a request in their lane.
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in the lane of a resource; dropping it leaves the lane.
#[derive(Debug)]
pub(super) struct Place {
    lanes: Arc<Lanes>,
    resource: Arc<str>,
    lane: Arc<Mutex<Lane>>,
    entered: Entered,
}

impl Place {
    /// Whether the stamp was newer than all others in the lane when the request entered. Then the
    /// layer tells the gate before the request waits, so that waiting requests with an older stamp
    /// leave.
    pub(super) fn outranks(&self) -> bool {
        self.entered.outranks
    }

    /// Waits for the turn of the request; fails with a newer stamp that the gate has admitted
    /// meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future keeps the place, and the turn if it was given meanwhile. Dropping the
    /// place gives up both.
    pub(super) async fn turn(&mut self) -> Told {
        loop {
            // Outside of the `match`, which would keep the lane locked.
            let turn = lock(&self.lane).ask(self.entered.number);
            match turn {
                Turn::Now(told) => return told,
                Turn::Later(told) => {
                    if let Ok(told) = told.await {
                        return told;
                    }
                }
            }
        }
    }

    /// Tells the requests in the lane of a stamp that the gate has seen.
    pub(super) fn seen(&self, stamp: Stamp) {
        let messages = lock(&self.lane).on_told(stamp);
        messages.into_iter().for_each(Message::send);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lanes = lock(&self.lanes.0);
        let mut lane = lock(&self.lane);
        let message = lane.leave(self.entered.number);
        if lane.is_empty() {
            lanes.remove(&self.resource);
        }
        drop((lane, lanes));
        if let Some(message) = message {
            message.send();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use leasehold_testing::stamp;

    use super::*;

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn enter(lanes: &Arc<Lanes>, resource: &str, most: usize) -> Place {
        lanes.enter(resource, stamp(5, 5), most).unwrap()
    }

    #[test]
    fn a_lane_lasts_while_somebody_is_in_it() {
        let lanes = Arc::new(Lanes::default());
        let mut first = enter(&lanes, "a", 2);
        assert!(poll(first.turn()).is_ready());
        let mut second = enter(&lanes, "a", 2);
        assert!(poll(second.turn()).is_pending());
        assert!(matches!(lanes.enter("a", stamp(5, 5), 2), Err(NoPlace::Full)));
        let mut other = enter(&lanes, "b", 2);
        assert!(poll(other.turn()).is_ready());
        assert_eq!(lanes.len(), 2);

        drop(first);
        assert!(poll(second.turn()).is_ready());
        drop((second, other));
        assert_eq!(lanes.len(), 0);
    }

    #[test]
    fn older_ones_take_no_place_from_a_newer_one() {
        let lanes = Arc::new(Lanes::default());
        let older = [enter(&lanes, "a", 2), enter(&lanes, "a", 2)];
        let newer = lanes.enter("a", stamp(6, 6), 2).unwrap();
        assert!(newer.outranks() && !older[1].outranks());
        let same = lanes.enter("a", stamp(6, 6), 2).unwrap();
        assert!(!same.outranks(), "the gate is told once");
        for full in [5, 6] {
            assert!(matches!(lanes.enter("a", stamp(full, full), 2), Err(NoPlace::Full)));
        }
        drop((older, newer, same));
        assert_eq!(lanes.len(), 0);
    }

    #[test]
    fn who_gives_up_waiting_holds_nobody_up() {
        let lanes = Arc::new(Lanes::default());
        let mut first = enter(&lanes, "a", 3);
        assert!(poll(first.turn()).is_ready());
        let mut gone = enter(&lanes, "a", 3);
        let mut third = enter(&lanes, "a", 3);
        assert!(poll(gone.turn()).is_pending());
        drop(gone);
        drop(first);
        assert!(poll(third.turn()).is_ready());
    }

    #[test]
    fn what_the_gate_has_seen_is_known_while_the_lane_lasts() {
        let lanes = Arc::new(Lanes::default());
        let first = enter(&lanes, "a", 3);
        let mut waits = enter(&lanes, "a", 3);
        first.seen(stamp(7, 7));
        first.seen(stamp(6, 6));
        assert_eq!(poll(waits.turn()), Poll::Ready(Err(stamp(7, 7))));
        for presented in [stamp(6, 6), stamp(7, 8)] {
            let refused = lanes.enter("a", presented, 0);
            assert!(matches!(refused, Err(NoPlace::Stale(highest)) if highest == stamp(7, 7)));
        }
        assert!(lanes.enter("a", stamp(7, 7), 9).is_ok());
        drop((first, waits));
        assert!(lanes.enter("a", stamp(6, 6), 1).is_ok());
    }
}
