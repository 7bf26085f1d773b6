use std::time::Duration;

use super::Step;
use crate::store::{Withdraw, WithdrawAnswer};

/// How long a withdrawn acquisition is remembered; the scripts are told the same.
pub(crate) const WITHDRAWAL_MARK: Duration = Duration::from_secs(30);

impl Step<'_> {
    /// Takes an acquisition back: its place, or its grant, which the next waiter gets.
    pub(crate) fn withdraw(&mut self, command: &Withdraw<'_>) -> WithdrawAnswer {
        let (id, leaves_queue) = (command.id, self.rules.leaves_queue);
        self.queue().remove(|place| leaves_queue(place.id, id));
        let ended_grant = self.lease().is_some_and(|lease| lease.id == id && !lease.kept);
        if ended_grant {
            self.end_and_grant_next();
        }
        self.row.mark_withdrawn(self.now, id, self.now.after(WITHDRAWAL_MARK));
        WithdrawAnswer { ended_grant }
    }
}
