use super::Step;
use crate::{
    seam::Named,
    store::{ForceRelease, ForceReleaseAnswer, Push},
};

impl Step<'_> {
    /// Ends the lease that was inspected and no other, moves the fence on, tells its runtime, and
    /// grants the lock to the next waiter.
    pub(crate) fn force_release(&mut self, command: &ForceRelease<'_>) -> ForceReleaseAnswer {
        let named = Named { id: command.id, fence: command.fence };
        let Some(lease) = self.lease().filter(|lease| lease.named() == named) else {
            return ForceReleaseAnswer::Changed;
        };
        let Named { id, fence } = named;
        let ended = lease.last.get();
        let above = self.token_after(self.row.counted(self.now).max(ended));
        if let Some(above) = above {
            self.count(above);
        }
        self.send(id, Push::ForceReleased { name: self.name.clone(), id, fence });
        self.end_and_grant_next();
        ForceReleaseAnswer::Ended { fence: above }
    }
}
