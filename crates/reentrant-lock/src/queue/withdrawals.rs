use std::task::Waker;

use leasehold_core::{AcquisitionId, Instant, StoreError};

use super::env::earlier;

/// What may still have the lock on the server, and the tasks that try the lock once that is over.
// Boxed, and mostly nothing: very many names are held.
#[derive(Debug, Default)]
pub(crate) struct Withdrawals(Option<Box<UnconfirmedWithdrawals>>);

#[derive(Debug, Default)]
struct UnconfirmedWithdrawals {
    withdrawals: Vec<Withdrawal>,
    /// The last failure of a withdrawal since the last call came: a refusal, or it was not sent.
    refusal: Option<StoreError>,
    watchers: Vec<Waker>,
    /// When the first of the tasks that try the lock gives up.
    watched_until: Option<Instant>,
}

/// An acquisition that the runtime takes back, until the server has answered.
#[derive(Debug)]
struct Withdrawal {
    id: AcquisitionId,
    /// Whether a call waits for it, so that its next copy is to be sent at once.
    is_wanted: bool,
    sender_waker: Option<Waker>,
}

impl Withdrawals {
    /// A withdrawal is about to be sent.
    pub(crate) fn add(&mut self, id: AcquisitionId) {
        let withdrawal = Withdrawal { id, is_wanted: false, sender_waker: None };
        self.0.get_or_insert_default().withdrawals.push(withdrawal);
    }

    /// A withdrawal was answered or given up.
    pub(crate) fn on_end(&mut self, wake: &mut Vec<Waker>, id: AcquisitionId) {
        let Some(unconfirmed) = &mut self.0 else { return };
        if let Some(at) = unconfirmed.withdrawals.iter().position(|one| one.id == id) {
            unconfirmed.withdrawals.remove(at);
            self.wake_tries(wake);
        }
    }

    /// A withdrawal was refused or not sent, and is repeated: the tasks that wait for it hear of
    /// it.
    pub(crate) fn on_refusal(&mut self, wake: &mut Vec<Waker>, error: &StoreError) {
        if let Some(unconfirmed) = &mut self.0 {
            unconfirmed.refusal = Some(error.clone());
            self.wake_tries(wake);
        }
    }

    /// Whether a call waits for a withdrawal, so that its next copy is to be sent at once.
    /// Otherwise `waker` is woken when one does.
    pub(crate) fn is_wanted(&mut self, id: AcquisitionId, waker: &Waker) -> bool {
        let mut withdrawals = self.0.iter_mut().flat_map(|one| &mut one.withdrawals);
        let Some(one) = withdrawals.find(|one| one.id == id) else { return false };
        one.sender_waker = Some(waker.clone());
        std::mem::take(&mut one.is_wanted)
    }

    /// Whether anything is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn has_any(&self) -> bool {
        self.0.as_ref().is_some_and(|one| !one.withdrawals.is_empty())
    }

    pub(super) fn has(&self, id: AcquisitionId) -> bool {
        self.0.iter().flat_map(|one| &one.withdrawals).any(|one| one.id == id)
    }

    pub(super) fn watched_until(&self) -> Option<Instant> {
        self.0.as_ref()?.watched_until
    }

    pub(super) fn refusal(&self) -> Option<&StoreError> {
        self.0.as_ref()?.refusal.as_ref()
    }

    /// A call needs the lock: what is withdrawn is not to pause between two copies.
    pub(super) fn hurry(&mut self, wake: &mut Vec<Waker>) {
        let Some(unconfirmed) = &mut self.0 else { return };
        unconfirmed.refusal = None;
        for one in &mut unconfirmed.withdrawals {
            one.is_wanted = true;
            wake.extend(one.sender_waker.take());
        }
    }

    /// `waker` is woken when the lock may be open, and at `until` at the latest.
    pub(super) fn watch(&mut self, waker: &Waker, until: Instant) {
        let unconfirmed = self.0.get_or_insert_default();
        unconfirmed.watched_until = Some(earlier(unconfirmed.watched_until, until));
        if !unconfirmed.watchers.iter().any(|known| known.will_wake(waker)) {
            unconfirmed.watchers.push(waker.clone());
        }
    }

    /// The tasks that try the lock are to look again.
    pub(super) fn wake_tries(&mut self, wake: &mut Vec<Waker>) {
        let Some(unconfirmed) = &mut self.0 else { return };
        wake.append(&mut unconfirmed.watchers);
        unconfirmed.watched_until = None;
        if unconfirmed.withdrawals.is_empty() {
            self.0 = None;
        }
    }
}
