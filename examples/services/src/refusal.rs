use leasehold::fencing::{GateError, TransactionConflict, sqlx};

use crate::Failure;

/// Why a transaction with an admission did not come about.
#[derive(Debug)]
pub enum Refusal {
    /// Somebody else has been let in: stop.
    Stale,
    /// Another transaction came between, which says nothing about the lease: repeat it.
    Conflict,
    /// Something else went wrong.
    Failed(Failure),
}

impl From<GateError> for Refusal {
    fn from(error: GateError) -> Self {
        match error {
            GateError::Stale(_) => Self::Stale,
            GateError::Conflict(_) => Self::Conflict,
            error => Self::Failed(error.into()),
        }
    }
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        match TransactionConflict::of(&error) {
            Some(_) => Self::Conflict,
            None => Self::Failed(error.into()),
        }
    }
}
