use leasehold::fencing::{GateError, TransactionConflict, sqlx};

use crate::Failure;

/// Why a transaction with an admission was not committed.
#[derive(Debug)]
pub enum Refusal {
    /// Another holder has been admitted: stop.
    Stale,
    /// Another transaction came between: repeat this one. The lease is not concerned.
    Conflict,
    /// Any other error.
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
