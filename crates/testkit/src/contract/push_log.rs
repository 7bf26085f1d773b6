use std::{
    collections::VecDeque,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Fence, LockStore, RuntimeId,
    store::{Granted, Listener, Push},
};

use crate::Patience;

/// What a runtime hears from a store, in order.
#[derive(Debug, Default)]
pub struct PushLog {
    heard: Mutex<VecDeque<Push>>,
}

impl PushLog {
    /// How long a push may take; real time, for real stores.
    const LIMIT: Duration = Duration::from_secs(10);

    /// Listens to a store for a runtime, and returns when the store can be heard.
    ///
    /// # Panics
    ///
    /// Panics if the store does not say so in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the log.
    pub async fn listen(store: &dyn LockStore, runtime: RuntimeId) -> Arc<Self> {
        let log = Arc::new(Self::default());
        let listener: Weak<Self> = Arc::downgrade(&log);
        store.listen(runtime, listener);
        assert_eq!(log.next().await, Push::Listening);
        log
    }

    /// Returns when further servers can be heard, too: a store of several tells of each.
    ///
    /// # Panics
    ///
    /// Panics if one does not say so in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no push but those that tell that somebody listens.
    pub async fn hears(&self, further: usize) {
        for _ in 0..further {
            assert_eq!(self.next().await, Push::Listening);
        }
    }

    /// The next push that tells of a lock: a store of several servers tells of each that it hears.
    ///
    /// # Panics
    ///
    /// Panics if there is none in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no push but those that tell that somebody listens.
    pub async fn told(&self) -> Push {
        loop {
            match self.next().await {
                Push::Listening => {}
                push => return push,
            }
        }
    }

    /// The next push.
    ///
    /// # Panics
    ///
    /// Panics if there is none in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no push.
    pub async fn next(&self) -> Push {
        let heard = Patience::of(Self::LIMIT).until_async(|| ready(self.heard().pop_front())).await;
        heard.expect("a push arrives in time")
    }

    /// The next push that tells another thing of a lock than one before, which may come more than
    /// once.
    ///
    /// # Panics
    ///
    /// Panics if there is none in time.
    ///
    /// # Cancel safety
    ///
    /// As of [`told`](Self::told).
    pub async fn told_after(&self, before: &Push) -> Push {
        loop {
            let push = self.told().await;
            if push != *before {
                return push;
            }
        }
    }

    /// The next push, which has to be a grant: to whom, which, and under which sign of life.
    ///
    /// # Panics
    ///
    /// Panics if it is none, or if there is none in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no push.
    pub async fn grant(&self) -> (AcquisitionId, Granted, u64) {
        match self.told().await {
            Push::Granted { id, granted, heartbeat, .. } => (id, granted, heartbeat),
            other => panic!("a grant was expected and not {other:?}"),
        }
    }

    /// The next push, which has to tell that a lease was ended by force.
    ///
    /// # Panics
    ///
    /// Panics if it tells something else, or if there is none in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no push.
    pub async fn force_released(&self) -> (AcquisitionId, Fence) {
        match self.told().await {
            Push::ForceReleased { id, fence, .. } => (id, fence),
            other => panic!("a forced release was expected and not {other:?}"),
        }
    }

    /// The next push, which has to tell that another runtime waits for a lock that is kept.
    ///
    /// # Panics
    ///
    /// Panics if it tells something else, or if there is none in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no push.
    pub async fn wanted(&self) -> (AcquisitionId, Fence) {
        match self.told().await {
            Push::Wanted { id, fence, .. } => (id, fence),
            other => panic!("a recall was expected and not {other:?}"),
        }
    }

    /// What was heard of locks so far and not asked for.
    pub fn drain(&self) -> Vec<Push> {
        let mut heard = self.drain_all();
        heard.retain(|push| *push != Push::Listening);
        heard
    }

    /// Everything that was heard so far and not asked for.
    pub fn drain_all(&self) -> Vec<Push> {
        self.heard().drain(..).collect()
    }

    fn heard(&self) -> MutexGuard<'_, VecDeque<Push>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for PushLog {
    fn on_push(&self, push: Push) {
        self.heard().push_back(push);
    }
}
