use std::task::Waker;

use leasehold_core::{AcquisitionId, Instant, StoreError};

use super::state::{Cohort, Env, wake_tries};

/// What may still have the lock on the server, and the tasks that try the lock once that is over.
#[derive(Debug, Default)]
// ADR 0005
pub(super) struct Opening {
    withdrawals: Vec<Withdrawal>,
    /// The last failure of a withdrawal since the last call came: a refusal, or it was not sent.
    pub(super) refusal: Option<StoreError>,
    watchers: Vec<Waker>,
    /// When the first of the tasks that try the lock gives up.
    pub(super) watched_until: Option<Instant>,
}

/// An acquisition that the runtime takes back, until the server has answered.
#[derive(Debug)]
struct Withdrawal {
    id: AcquisitionId,
    /// Whether a call waits for it, so that its next copy is to be sent at once.
    is_wanted: bool,
    sender_waker: Option<Waker>,
}

impl Opening {
    pub(super) fn is_withdrawing(&self) -> bool {
        !self.withdrawals.is_empty()
    }

    pub(super) fn withdraws(&self, id: AcquisitionId) -> bool {
        self.withdrawals.iter().any(|one| one.id == id)
    }

    /// A call needs the lock: what is withdrawn is not to pause between two copies.
    pub(super) fn hurry(&mut self, wake: &mut Vec<Waker>) {
        self.refusal = None;
        for one in &mut self.withdrawals {
            one.is_wanted = true;
            wake.extend(one.sender_waker.take());
        }
    }

    /// `waker` is woken when the lock may be open, and at `until` at the latest.
    pub(super) fn watch(&mut self, waker: &Waker, until: Instant) {
        self.watched_until = Some(self.watched_until.map_or(until, |known| known.min(until)));
        if !self.watchers.iter().any(|known| known.will_wake(waker)) {
            self.watchers.push(waker.clone());
        }
    }

    /// The tasks that try the lock are to look again. Returns whether nothing else is remembered.
    pub(super) fn wake(&mut self, wake: &mut Vec<Waker>) -> bool {
        wake.append(&mut self.watchers);
        self.watched_until = None;
        self.withdrawals.is_empty()
    }
}

impl Cohort {
    pub(crate) fn on_withdrawal(&mut self, id: AcquisitionId) {
        let withdrawal = Withdrawal { id, is_wanted: false, sender_waker: None };
        self.opening.get_or_insert_default().withdrawals.push(withdrawal);
    }

    pub(crate) fn on_withdrawn(&mut self, env: &mut Env<'_>, id: AcquisitionId) {
        if let Some(opening) = &mut self.opening
            && let Some(at) = opening.withdrawals.iter().position(|one| one.id == id)
        {
            opening.withdrawals.remove(at);
            wake_tries(&mut self.opening, &mut env.effects.wake);
        }
    }

    /// A withdrawal was refused or not sent, and is repeated: the tasks that wait for it hear of
    /// it.
    pub(crate) fn on_withdrawal_refused(&mut self, env: &mut Env<'_>, error: &StoreError) {
        if let Some(opening) = &mut self.opening {
            opening.refusal = Some(error.clone());
            wake_tries(&mut self.opening, &mut env.effects.wake);
        }
    }

    /// Whether a call waits for a withdrawal, so that its next copy is to be sent at once.
    /// Otherwise `waker` is woken when one does.
    pub(crate) fn is_withdrawal_wanted(&mut self, id: AcquisitionId, waker: &Waker) -> bool {
        let withdrawals = self.opening.iter_mut().flat_map(|opening| &mut opening.withdrawals);
        let Some(one) = withdrawals.into_iter().find(|one| one.id == id) else { return false };
        one.sender_waker = Some(waker.clone());
        std::mem::take(&mut one.is_wanted)
    }
}
