use std::task::Waker;

use leasehold_core::{AcquisitionId, Instant, StoreError};

use super::state::{Cohort, Env, Wakers};

/// What may still have the lock on the server although no task here wants it, and the tasks that
/// try the lock once that is over.
///
/// It takes no room while there is neither: very many names are held.
#[derive(Debug, Default)]
pub(super) struct Opening(Option<Box<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    withdrawals: Vec<Withdrawal>,
    /// With what one of them was refused, or could not be sent, since the last call came.
    refusal: Option<StoreError>,
    /// What wakes the tasks that try the lock afterwards.
    watchers: Vec<Waker>,
    /// Until when the first of them waits for that.
    watched_until: Option<Instant>,
}

/// An acquisition that the runtime takes back, until the server has answered.
#[derive(Debug)]
struct Withdrawal {
    id: AcquisitionId,
    /// Whether a call waits for it, so that its next copy is to be sent at once.
    is_wanted: bool,
    /// What wakes the task that sends it.
    sender: Option<Waker>,
}

impl Opening {
    /// Whether there is nothing to be remembered.
    pub(super) fn is_done(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a withdrawal was not answered yet.
    pub(super) fn is_withdrawing(&self) -> bool {
        self.0.as_ref().is_some_and(|parts| !parts.withdrawals.is_empty())
    }

    /// Whether the withdrawal of `id` was not answered yet.
    pub(super) fn withdraws(&self, id: AcquisitionId) -> bool {
        self.0.as_ref().is_some_and(|parts| parts.withdrawals.iter().any(|one| one.id == id))
    }

    /// A call needs the lock: what is withdrawn is not to pause between two copies.
    pub(super) fn hurry(&mut self, wake: &mut Wakers) {
        let Some(parts) = &mut self.0 else { return };
        parts.refusal = None;
        for one in &mut parts.withdrawals {
            one.is_wanted = true;
            wake.extend(one.sender.take());
        }
    }

    /// With what a withdrawal was refused, or could not be sent, since the last call came.
    pub(super) fn refusal(&self) -> Option<&StoreError> {
        self.0.as_ref()?.refusal.as_ref()
    }

    /// `waker` is woken when the lock may be open, and at `until` at the latest.
    pub(super) fn watch(&mut self, waker: &Waker, until: Instant) {
        let parts = self.0.get_or_insert_default();
        let first = parts.watched_until.map_or(until, |known| known.min(until));
        parts.watched_until = Some(first);
        if !parts.watchers.iter().any(|known| known.will_wake(waker)) {
            parts.watchers.push(waker.clone());
        }
    }

    /// When the wait of the first watcher is over.
    pub(super) fn watched_until(&self) -> Option<Instant> {
        self.0.as_ref()?.watched_until
    }

    /// The tasks that try the lock are to look again.
    pub(super) fn wake(&mut self, wake: &mut Wakers) {
        let Some(parts) = &mut self.0 else { return };
        wake.extend(parts.watchers.drain(..));
        parts.watched_until = None;
        if parts.withdrawals.is_empty() {
            self.0 = None;
        }
    }
}

impl Cohort {
    /// An acquisition is withdrawn from now on.
    pub(crate) fn on_withdrawal(&mut self, id: AcquisitionId) {
        let withdrawal = Withdrawal { id, is_wanted: false, sender: None };
        self.opening.0.get_or_insert_default().withdrawals.push(withdrawal);
    }

    /// A withdrawal was answered, or given up.
    pub(crate) fn on_withdrawn(&mut self, env: &mut Env<'_>, id: AcquisitionId) {
        if let Some(parts) = &mut self.opening.0
            && let Some(at) = parts.withdrawals.iter().position(|one| one.id == id)
        {
            parts.withdrawals.remove(at);
            self.opening.wake(&mut env.effects.wake);
        }
    }

    /// A withdrawal was refused or could not be sent, and is repeated: the tasks that wait for it
    /// hear of that.
    pub(crate) fn on_withdrawal_refused(&mut self, env: &mut Env<'_>, error: &StoreError) {
        if let Some(parts) = &mut self.opening.0 {
            parts.refusal = Some(error.clone());
            self.opening.wake(&mut env.effects.wake);
        }
    }

    /// Whether a call waits for a withdrawal, so that its next copy is to be sent at once.
    /// Otherwise `waker` is woken when one does.
    pub(crate) fn is_withdrawal_wanted(&mut self, id: AcquisitionId, waker: &Waker) -> bool {
        let withdrawals = self.opening.0.iter_mut().flat_map(|parts| &mut parts.withdrawals);
        let Some(one) = withdrawals.into_iter().find(|one| one.id == id) else { return false };
        one.sender = Some(waker.clone());
        std::mem::take(&mut one.is_wanted)
    }
}
