//! What the subjects share.

use leasehold::{error::StoreErrorKind, fencing::GateError};
use leasehold_testkit::gates::Outcome;

/// What a gate's answer means to the suite.
pub(crate) fn outcome<T>(answer: Result<T, GateError>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Accepted,
        Err(GateError::Stale(stale)) => Outcome::Stale(Some(stale.highest)),
        Err(GateError::Resource(_)) => Outcome::NoSuchName,
        Err(GateError::Store(error)) if error.kind() == StoreErrorKind::Indeterminate => {
            Outcome::Unknown
        }
        Err(error) => {
            println!("  failed: {error}");
            Outcome::Failed
        }
    }
}
