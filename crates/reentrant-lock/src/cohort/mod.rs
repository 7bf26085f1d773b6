//! The rules of turns, as pure functions of state, time and event: what the tasks of one runtime
//! wait for that want one name, and what the runtime sends to the store for them.

mod grant;
mod join;
mod phase;
mod place;
mod queue;
mod release;
mod state;
#[cfg(test)]
mod tests;
mod timer;

pub(crate) use join::{Lead, Progress, Taken};
pub(crate) use place::Beat;
pub(crate) use queue::Ticket;
pub(crate) use release::{AfterLease, NextTurn};
pub(crate) use state::{Cohort, Effects, Env, NextPlace, Numbers, Outgoing, TurnId, TurnRelease};

use leasehold_core::{Instant, StoreError, StoreErrorKind};

/// The answer to a command, and when that was sent.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) sent_at: Instant,
    pub(crate) result: Result<T, StoreError>,
}

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
