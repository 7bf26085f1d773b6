use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{select, sync::Notify};

use super::{
    attempt::{Asked, Asking},
    node::QuorumNode,
    store::Inner,
};
use crate::{
    clock::Instant,
    store::{Heartbeat, Push},
    types::{AcquisitionId, Ttl},
};

/// An acquisition of this process that waits: what it asked for, and under which heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    asking: Asking,
    /// The number of its last heartbeat. A grant is believed from when that was sent.
    number: u64,
    /// Whether it is being tried, after a message.
    is_trying: bool,
    /// Whether another message came meanwhile.
    is_called: bool,
    /// Ends the pause of the present try when another message comes.
    calls: Arc<Notify>,
    /// When it is forgotten unless it is heard again.
    until: Instant,
}

/// Those who wait, by acquisition.
#[derive(Debug, Default)]
// ADR 0039
pub(crate) struct Waitings {
    all: BTreeMap<AcquisitionId, Waiting>,
    /// Those called before it was known that they wait.
    early: Vec<AcquisitionId>,
    swept: usize,
}

/// How many are remembered that were called early.
const EARLY: usize = 32;

impl Waitings {
    /// For how long nodes have seen an acquisition wait, as they told last.
    pub(crate) fn waited(&self, id: AcquisitionId) -> Duration {
        self.all.get(&id).map(|one| one.asking.waited).unwrap_or_default()
    }

    pub(crate) fn remove(&mut self, id: AcquisitionId) {
        self.all.remove(&id);
    }

    /// Whether it was called before.
    fn insert(&mut self, id: AcquisitionId, one: Waiting, now: Instant) -> bool {
        if let Some(known) = self.all.get_mut(&id) {
            known.number = known.number.max(one.number);
            known.until = one.until;
            let watermark = known.asking.watermark.max(one.asking.watermark);
            let waited = known.asking.waited.max(one.asking.waited);
            known.asking = Asking { watermark, waited, ..one.asking };
        } else {
            self.all.insert(id, one);
            if self.all.len() > self.swept * 2 + 64 {
                self.all.retain(|_, one| one.until > now);
                self.swept = self.all.len();
            }
        }
        let early = self.early.iter().position(|called| *called == id);
        early.map(|at| self.early.swap_remove(at)).is_some()
    }

    /// What to try, if it waits and is not tried already.
    fn call(&mut self, id: AcquisitionId) -> Option<(Asking, u64)> {
        let Some(one) = self.all.get_mut(&id) else {
            if self.early.len() == EARLY {
                self.early.remove(0);
            }
            self.early.push(id);
            return None;
        };
        if std::mem::replace(&mut one.is_trying, true) {
            one.is_called = true;
            one.calls.notify_one();
            return None;
        }
        Some((one.asking.clone(), one.number))
    }

    /// What to try once more after a try in vain.
    fn again(&mut self, id: AcquisitionId) -> Option<(Asking, u64)> {
        let one = self.all.get_mut(&id)?;
        one.is_trying = std::mem::take(&mut one.is_called);
        one.is_trying.then(|| (one.asking.clone(), one.number))
    }
}

impl<N: QuorumNode> Inner<N> {
    /// Remembers that an acquisition waits.
    pub(crate) fn wait(self: &Arc<Self>, asking: Asking, ttl: Ttl, heartbeat: Heartbeat) {
        let (now, id) = (self.clock.now(), asking.id);
        // Another try of it has the lock: this answer is old.
        if self.records.lock().get(id).is_some() {
            return;
        }
        // A grant after a message is for the claim window.
        let asking = Asking { life: heartbeat.window(ttl), ..asking };
        let one = Waiting {
            until: now + asking.heard * 2,
            asking,
            number: heartbeat.number,
            is_trying: false,
            is_called: false,
            calls: Arc::default(),
        };
        if self.waiting.lock().insert(id, one, now) {
            self.call(id);
        }
    }

    /// Whether an acquisition waits here; then it is tried at once.
    pub(crate) fn call(self: &Arc<Self>, id: AcquisitionId) {
        let Some(mut what) = self.waiting.lock().call(id) else { return };
        let inner = Arc::clone(self);
        drop(self.runtime.spawn(async move {
            loop {
                if inner.come(&what.0, what.1).await {
                    return;
                }
                match inner.waiting.lock().again(id) {
                    Some(again) => what = again,
                    None => return,
                }
            }
        }));
    }

    /// Waits before another try: until then, or until a node calls.
    pub(crate) async fn step_back(&self, id: AcquisitionId, until: Instant) {
        let calls = self.waiting.lock().all.get(&id).map(|one| Arc::clone(&one.calls));
        let called = async {
            match calls {
                Some(calls) => calls.notified().await,
                None => std::future::pending().await,
            }
        };
        select! {
            biased;
            () = called => {}
            () = self.clock.sleep_until(until) => {}
        }
    }

    /// Tries for an acquisition whose turn it may be, and tells its runtime of a grant.
    async fn come(self: &Arc<Self>, asking: &Asking, number: u64) -> bool {
        let deadline = self.clock.now() + self.settings.patience() * 2;
        let Some(turn) = self.set_out(asking.id, deadline).await else { return false };
        // The call before has it, and has told so.
        if self.records.lock().get(asking.id).is_some() {
            return true;
        }
        let micros = self.micros(&asking.name);
        let Ok(Asked::Granted(granted)) = self.ask(&turn, asking, true, micros, deadline).await
        else {
            return false;
        };
        self.waiting.lock().remove(asking.id);
        let (name, id) = (asking.name.clone(), asking.id);
        self.tell(id.runtime(), Push::Granted { name, id, granted, heartbeat: number });
        true
    }
}
