use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Stamp;
use tokio::sync::{OwnedMutexGuard, watch};

use crate::rule::{Verdict, judge};

/// One lane per resource, in which requests go one after another in the order they came.
///
/// A lane exists while somebody is in it, so there are never more lanes than requests.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<Box<str>, Lane>>);

#[derive(Debug, Default)]
struct Lane {
    shared: Arc<Shared>,
    present: usize,
}

/// What those in one lane share.
#[derive(Debug, Default)]
struct Shared {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The highest stamp that the gate has told to one in the lane. It is forgotten with the lane,
    /// and a request that it refuses keeps no lane alive: a watermark that an operator has set back
    /// counts as soon as those in the lane have left it.
    highest: watch::Sender<Option<Stamp>>,
}

/// Why a request does not enter a lane.
#[derive(Debug)]
pub(super) enum NoPlace {
    /// The gate has admitted this stamp already.
    Stale(Stamp),
    /// There are as many in the lane as may be.
    Full,
}

impl Lanes {
    /// Enters the lane of a resource, unless the stamp is stale there or `most` are in it.
    pub(super) fn enter(
        self: &Arc<Self>,
        resource: &str,
        presented: Stamp,
        most: usize,
    ) -> Result<Place, NoPlace> {
        let mut lanes = self.lock();
        let shared = if let Some(lane) = lanes.get_mut(resource) {
            if let Verdict::Refuse { highest } = judge(*lane.shared.highest.borrow(), presented) {
                return Err(NoPlace::Stale(highest));
            }
            if lane.present >= most {
                return Err(NoPlace::Full);
            }
            lane.present += 1;
            Arc::clone(&lane.shared)
        } else {
            let lane = Lane { present: 1, ..Lane::default() };
            Arc::clone(&lanes.entry(resource.into()).or_insert(lane).shared)
        };
        let (lanes, resource) = (Arc::clone(self), resource.into());
        Ok(Place { lanes, resource, presented, shared, held: None })
    }

    /// How many resources somebody is in the lane of.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn leave(&self, resource: &str) {
        let mut lanes = self.lock();
        if let Some(lane) = lanes.get_mut(resource) {
            lane.present -= 1;
            if lane.present == 0 {
                lanes.remove(resource);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the lane of a resource; dropping it leaves the lane.
#[derive(Debug)]
pub(super) struct Place {
    lanes: Arc<Lanes>,
    resource: Box<str>,
    presented: Stamp,
    shared: Arc<Shared>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Place {
    /// Waits until all who came before have left; fails with the stamp that came between.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the turn; the place is left when it is dropped.
    pub(super) async fn turn(&mut self) -> Result<(), Stamp> {
        let mut highest = self.shared.highest.subscribe();
        let is_stale =
            |seen: &Option<Stamp>| matches!(judge(*seen, self.presented), Verdict::Refuse { .. });
        tokio::select! {
            biased;
            // Never closed: this place has its sender.
            Ok(seen) = highest.wait_for(is_stale) => match *seen {
                Some(highest) => Err(highest),
                None => Ok(()),
            },
            held = Arc::clone(&self.shared.turn).lock_owned() => {
                self.held = Some(held);
                Ok(())
            }
        }
    }

    /// Tells those in the lane what the gate has seen.
    pub(super) fn seen(&self, stamp: Stamp) {
        self.shared.highest.send_if_modified(|highest| {
            let is_newer = highest.is_none_or(|highest| highest.fence < stamp.fence);
            if is_newer {
                *highest = Some(stamp);
            }
            is_newer
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Before the lane is left: who enters a new lane must not meet one who is still in the old.
        self.held = None;
        self.lanes.leave(&self.resource);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::testing::stamp;

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
