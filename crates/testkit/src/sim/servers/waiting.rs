use leasehold_core::{
    Replication, StoreError,
    store::{AcquireAnswer, HoldAnswer, RenewAnswer, Reply},
};

use crate::sim::network::{Letter, Outcome};

/// A command that was run, and waits for acknowledgements.
#[derive(Debug)]
pub(in crate::sim) struct Waiting {
    pub(in crate::sim) letter: Letter,
    pub(in crate::sim) outcome: Outcome,
    /// The write that replicas have to have.
    pub(in crate::sim) write: u64,
    pub(in crate::sim) acks: Replication,
}

impl Waiting {
    /// The outcome, if nothing in it needs acknowledgements that it has not.
    pub(in crate::sim) fn judge(
        outcome: Outcome,
        acknowledged: impl Fn() -> Result<(), StoreError>,
    ) -> Outcome {
        match outcome? {
            answer @ (Reply::Acquire(AcquireAnswer::Granted(_))
            | Reply::Hold(HoldAnswer::Held { .. })) => acknowledged().map(|()| answer),
            Reply::Renew(mut answers) => {
                for answer in &mut answers {
                    if matches!(answer, Ok(RenewAnswer::Renewed { .. }))
                        && let Err(error) = acknowledged()
                    {
                        *answer = Err(error);
                    }
                }
                Ok(Reply::Renew(answers))
            }
            answer => Ok(answer),
        }
    }
}
