//! The rules of turns: what the tasks of this runtime wait for, and what it sends for them.

mod grant;
mod idle;
mod join;
mod opening;
mod phase;
mod place;
mod queue;
mod release;
mod state;
#[cfg(test)]
mod tests;
mod timer;

pub(crate) use idle::Keep;
pub(crate) use join::{Joined, Lead, NoLease, Progress, Taken};
pub(crate) use place::{Beat, Failing};
pub(crate) use queue::Ticket;
pub(crate) use release::{AfterLease, NextTurn};
pub(crate) use state::{
    Cohort, Effects, Ended, Env, NextPlace, Numbers, Outgoing, TurnId, TurnRelease,
};

use leasehold_core::{Instant, StoreError, StoreErrorKind};

/// The answer to a command, and when that was sent.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) sent_at: Instant,
    pub(crate) result: Result<T, StoreError>,
}

/// The store did not answer for as long as a call waited.
pub(crate) fn unheard() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the server has not answered in the time of the call",
        "check server and network; give the wait more time than a round trip takes",
    )
}

/// A try has no use for its answer: the grant is over, or its id was withdrawn.
fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "an answer was taken too late to be believed",
        "poll the acquiring future in time: look for blocking code on its executor",
    )
    .as_answer()
}
