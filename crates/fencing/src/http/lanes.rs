use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

/// One lane per resource, in which requests go one after another in the order they came.
///
/// A lane exists while somebody is in it, so there are never more lanes than requests.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<Box<str>, Lane>>);

#[derive(Debug, Default)]
struct Lane {
    turn: Arc<tokio::sync::Mutex<()>>,
    present: usize,
}

impl Lanes {
    /// Enters the lane of a resource, unless `most` are in it.
    pub(super) fn enter(self: &Arc<Self>, resource: &str, most: usize) -> Option<Place> {
        let mut lanes = self.lock();
        let turn = if let Some(lane) = lanes.get_mut(resource) {
            if lane.present >= most {
                return None;
            }
            lane.present += 1;
            Arc::clone(&lane.turn)
        } else {
            let lane = Lane { present: 1, ..Lane::default() };
            Arc::clone(&lanes.entry(resource.into()).or_insert(lane).turn)
        };
        Some(Place { lanes: Arc::clone(self), resource: resource.into(), turn, held: None })
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
    turn: Arc<tokio::sync::Mutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Place {
    /// Waits until all who came before have left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the turn; the place is left when it is dropped.
    pub(super) async fn turn(&mut self) {
        self.held = Some(Arc::clone(&self.turn).lock_owned().await);
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

    fn poll(future: impl Future<Output = ()>) -> Poll<()> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_lane_lasts_while_somebody_is_in_it() {
        let lanes = Arc::new(Lanes::default());
        let mut first = lanes.enter("a", 2).unwrap();
        assert!(poll(first.turn()).is_ready());
        let mut second = lanes.enter("a", 2).unwrap();
        assert!(poll(second.turn()).is_pending());
        assert!(lanes.enter("a", 2).is_none());
        let mut other = lanes.enter("b", 2).unwrap();
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
        let mut first = lanes.enter("a", 3).unwrap();
        assert!(poll(first.turn()).is_ready());
        let mut gone = lanes.enter("a", 3).unwrap();
        let mut third = lanes.enter("a", 3).unwrap();
        assert!(poll(gone.turn()).is_pending());
        drop(gone);
        drop(first);
        assert!(poll(third.turn()).is_ready());
    }
}
