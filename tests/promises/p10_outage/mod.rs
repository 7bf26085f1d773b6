//! P10: an outage is told as an outage, a taken lock as a taken lock; and in few lines.

mod counted;
mod known;
mod logged;
mod texts;
mod tries;
mod waits;

use leasehold::{
    Guard,
    error::{AcquireError, StoreError, StoreErrorKind, Unavailable},
};
use leasehold_testkit::{Fault, Gate};

use crate::support::{Waiting, definite, indeterminate};

/// Everything that a dead server makes of a command.
fn silences() -> Vec<Fault> {
    vec![
        Fault::Fail(definite()),
        Fault::Fail(indeterminate()),
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::Delay(Gate::new()),
        Fault::DelayReply(Gate::new()),
    ]
}

/// A refusal that the server itself tells.
fn refusal() -> StoreError {
    StoreError::new(StoreErrorKind::Definite, "LOADING the data", "wait for it").as_answer()
}

/// What a wait said that met an outage, and is over by now.
async fn outage(waiting: Waiting) -> Unavailable {
    assert!(waiting.is_over(), "the wait goes on");
    unavailable(waiting.outcome().await)
}

/// What a call said that met an outage.
fn unavailable(outcome: Result<Guard, AcquireError>) -> Unavailable {
    match outcome {
        Err(AcquireError::Unavailable(outage)) => *outage,
        other => panic!("not told as an outage: {other:?}"),
    }
}
