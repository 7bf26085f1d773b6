use std::sync::Arc;

use leasehold_core::{AcquisitionId, StoreError};
use tokio::sync::{Notify, futures::OwnedNotified};

use super::env::Effects;

/// What may still have the lock on the server, and the tasks that try the lock once that is over.
// Boxed, and mostly nothing: very many names are held.
#[derive(Debug, Default)]
pub(crate) struct Withdrawals(Option<Box<UnconfirmedWithdrawals>>);

#[derive(Debug, Default)]
struct UnconfirmedWithdrawals {
    /// Acquisitions that the runtime takes back, until the server has answered; each with what is
    /// notified when its next copy is to be sent at once.
    withdrawals: Vec<(AcquisitionId, Arc<Notify>)>,
    /// The last failure of a withdrawal since the last call came: a refusal, or it was not sent.
    refusal: Option<StoreError>,
    /// Notifies the tasks that try the lock.
    changed: Arc<Notify>,
}

impl Withdrawals {
    /// A withdrawal is about to be sent.
    pub(crate) fn add(&mut self, id: AcquisitionId, hurry: Arc<Notify>) {
        self.0.get_or_insert_default().withdrawals.push((id, hurry));
    }

    /// A withdrawal was answered or given up.
    pub(crate) fn on_end(&mut self, effects: &mut Effects, id: AcquisitionId) {
        let Some(unconfirmed) = &mut self.0 else { return };
        if let Some(at) = unconfirmed.withdrawals.iter().position(|(known, _)| *known == id) {
            unconfirmed.withdrawals.remove(at);
            self.wake_tries(effects);
        }
    }

    /// A withdrawal was refused or not sent, and is repeated: the tasks that wait for it hear of
    /// it.
    pub(crate) fn on_refusal(&mut self, effects: &mut Effects, error: &StoreError) {
        if let Some(unconfirmed) = &mut self.0 {
            unconfirmed.refusal = Some(error.clone());
            self.wake_tries(effects);
        }
    }

    /// Whether anything is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn has_any(&self) -> bool {
        self.0.as_ref().is_some_and(|one| !one.withdrawals.is_empty())
    }

    pub(super) fn has(&self, id: AcquisitionId) -> bool {
        self.0.iter().flat_map(|one| &one.withdrawals).any(|(known, _)| *known == id)
    }

    pub(super) fn refusal(&self) -> Option<&StoreError> {
        self.0.as_ref()?.refusal.as_ref()
    }

    /// A call needs the lock: what is withdrawn is not to pause between two copies.
    pub(super) fn hurry(&mut self, effects: &mut Effects) {
        let Some(unconfirmed) = &mut self.0 else { return };
        unconfirmed.refusal = None;
        effects.hurry.extend(unconfirmed.withdrawals.iter().map(|(_, hurry)| Arc::clone(hurry)));
    }

    /// Resolves when the lock may be open.
    pub(super) fn watch(&mut self) -> OwnedNotified {
        Arc::clone(&self.0.get_or_insert_default().changed).notified_owned()
    }

    /// The tasks that try the lock are to look again.
    pub(super) fn wake_tries(&mut self, effects: &mut Effects) {
        let Some(unconfirmed) = &mut self.0 else { return };
        effects.released = Some(Arc::clone(&unconfirmed.changed));
        if unconfirmed.withdrawals.is_empty() {
            self.0 = None;
        }
    }
}
