//! The rules of turns, as pure functions of state, time and event: what the tasks of one runtime
//! that want one name wait for, and what the runtime tells the store for them.

mod asked;
mod beginning;
mod block;
mod effects;
mod ended;
mod gap;
mod looks;
mod moment;
mod passing;
mod phase;
mod place;
mod queue;
mod state;
mod tasks;
#[cfg(test)]
mod tests;
mod told;
mod turn;
mod unanswered;

pub(crate) use asked::{Answer, Asked};
pub(crate) use effects::{Effects, End, Send};
pub(crate) use ended::Again;
pub(crate) use moment::{Moment, Numbers};
pub(crate) use passing::AfterLease;
pub(crate) use place::Beat;
pub(crate) use queue::Ticket;
pub(crate) use state::Cohort;
pub(crate) use tasks::{Joined, Lead, Standing, Taken};

use leasehold_core::{StoreError, StoreErrorKind};

/// Nothing was heard of the store for as long as a call waited.
pub(crate) fn unheard() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the server has not answered in the time of the call",
        "check server and network; give the wait more time than a round trip takes",
    )
}

/// A grant whose answer was taken too late; it is withdrawn.
fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "an answer was taken too late to be believed",
        "poll the acquiring future in time: look for blocking code on its executor",
    )
    .as_answer()
}
