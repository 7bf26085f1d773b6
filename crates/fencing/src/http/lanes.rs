use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::{FenceToken, Stamp};
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
    /// How many are in the lane, by fence.
    present: BTreeMap<FenceToken, usize>,
}

impl Lane {
    /// Whether a stamp is newer than what all others in the lane present and the gate has told: its
    /// lease has taken over from theirs.
    fn is_outranked_by(&self, presented: Stamp) -> bool {
        let newest = self.present.last_key_value().map(|(newest, _)| *newest);
        let told = self.shared.highest.borrow().map(|highest| highest.fence);
        newest.max(told).is_some_and(|newest| newest < presented.fence)
    }

    /// How many in the lane have a fence that is not older.
    fn not_older_than(&self, fence: FenceToken) -> usize {
        self.present.range(fence..).map(|(_, present)| present).sum()
    }
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
    /// There are as many in the lane as may be, of this fence and newer ones.
    Full,
}

impl Lanes {
    /// Enters the lane of a resource, unless the stamp is stale there or `most` are in it whose fence
    /// is not older: a holder that was replaced takes no place from the new one.
    pub(super) fn enter(
        self: &Arc<Self>,
        resource: &str,
        presented: Stamp,
        most: usize,
    ) -> Result<Place, NoPlace> {
        let mut lanes = self.lock();
        let (mut outranks, fence) = (false, presented.fence);
        let shared = if let Some(lane) = lanes.get_mut(resource) {
            if let Verdict::Refuse { highest } = judge(*lane.shared.highest.borrow(), presented) {
                return Err(NoPlace::Stale(highest));
            }
            if lane.not_older_than(fence) >= most {
                return Err(NoPlace::Full);
            }
            outranks = lane.is_outranked_by(presented);
            *lane.present.entry(fence).or_default() += 1;
            Arc::clone(&lane.shared)
        } else {
            let lane = Lane { present: BTreeMap::from([(fence, 1)]), ..Lane::default() };
            Arc::clone(&lanes.entry(resource.into()).or_insert(lane).shared)
        };
        let (lanes, resource) = (Arc::clone(self), resource.into());
        Ok(Place { lanes, resource, presented, outranks, shared, held: None })
    }

    /// How many resources somebody is in the lane of.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn leave(&self, resource: &str, fence: FenceToken) {
        let mut lanes = self.lock();
        let Some(lane) = lanes.get_mut(resource) else { return };
        if let Entry::Occupied(mut present) = lane.present.entry(fence) {
            *present.get_mut() -= 1;
            if *present.get() == 0 {
                present.remove();
            }
        }
        if lane.present.is_empty() {
            lanes.remove(resource);
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
    outranks: bool,
    shared: Arc<Shared>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Place {
    /// Whether its stamp was newer than all in the lane when it entered. The gate is to be told
    /// before it waits, so that those leave which wait with an older one.
    pub(super) fn outranks(&self) -> bool {
        self.outranks
    }

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
        self.lanes.leave(&self.resource, self.presented.fence);
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
