use std::sync::Arc;

use leasehold_core::{AcquisitionId, StoreError};
use tokio::sync::{Notify, futures::OwnedNotified};

use super::env::Effects;

/// What may still have the lock on the server, and the tasks that try the lock once that is over.
#[derive(Debug, Default)]
pub(crate) struct Withdrawals {
    /// Acquisitions that the runtime takes back, until the server has answered; each with what is
    /// notified when its next copy is to be sent at once.
    unanswered: Vec<(AcquisitionId, Arc<Notify>)>,
    /// The last failure of a withdrawal since the last call came: a refusal, or it was not sent.
    refusal: Option<StoreError>,
    /// Notifies the tasks that try the lock, if some do.
    tries: Option<Arc<Notify>>,
}

impl Withdrawals {
    /// A withdrawal is about to be sent.
    pub(crate) fn add(&mut self, id: AcquisitionId, hurry: Arc<Notify>) {
        self.unanswered.push((id, hurry));
    }

    /// A withdrawal was answered or given up.
    pub(crate) fn on_end(&mut self, effects: &mut Effects, id: AcquisitionId) {
        if let Some(at) = self.unanswered.iter().position(|(known, _)| *known == id) {
            self.unanswered.remove(at);
            self.refusal.take_if(|_| self.unanswered.is_empty());
            self.wake_tries(effects);
        }
    }

    /// A withdrawal was refused or not sent, and is repeated: the tasks that wait for it hear of
    /// it.
    pub(crate) fn on_refusal(&mut self, effects: &mut Effects, error: &StoreError) {
        if self.has_any() {
            self.refusal = Some(error.clone());
            self.wake_tries(effects);
        }
    }

    /// Whether anything is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.unanswered.is_empty() && self.tries.is_none()
    }

    pub(super) fn has_any(&self) -> bool {
        !self.unanswered.is_empty()
    }

    pub(super) fn has(&self, id: AcquisitionId) -> bool {
        self.unanswered.iter().any(|(known, _)| *known == id)
    }

    pub(super) fn refusal(&self) -> Option<&StoreError> {
        self.refusal.as_ref()
    }

    /// A call needs the lock: what is withdrawn is not to pause between two copies.
    pub(super) fn hurry(&mut self, effects: &mut Effects) {
        self.refusal = None;
        effects.hurry.extend(self.unanswered.iter().map(|(_, hurry)| Arc::clone(hurry)));
    }

    /// Resolves when the lock may be open.
    pub(super) fn watch(&mut self) -> OwnedNotified {
        Arc::clone(self.tries.get_or_insert_default()).notified_owned()
    }

    /// The tasks that try the lock are to look again.
    pub(super) fn wake_tries(&mut self, effects: &mut Effects) {
        effects.wake_tries = self.tries.take().or_else(|| effects.wake_tries.take());
    }
}
