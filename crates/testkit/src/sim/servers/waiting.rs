use leasehold_core::{
    Acks, StoreError,
    store::{AcquireAnswer, HoldAnswer, RenewAnswer},
};

use crate::{
    faulty::Answer,
    sim::network::{Letter, Outcome},
};

/// A command that was run, and waits for acknowledgements.
#[derive(Debug)]
pub(in crate::sim) struct Waiting {
    pub(in crate::sim) letter: Letter,
    pub(in crate::sim) outcome: Outcome,
    /// The write that replicas have to have.
    pub(in crate::sim) write: u64,
    pub(in crate::sim) acks: Acks,
}

impl Waiting {
    /// The outcome, if nothing in it needs acknowledgements that it has not.
    pub(in crate::sim) fn judge(
        outcome: Outcome,
        acknowledged: impl Fn() -> Result<(), StoreError>,
    ) -> Outcome {
        match outcome? {
            answer @ (Answer::Acquire(AcquireAnswer::Granted(_))
            | Answer::Hold(HoldAnswer::Held { .. })) => acknowledged().map(|()| answer),
            Answer::Renew(mut answers) => {
                for answer in &mut answers {
                    if matches!(answer, Ok(RenewAnswer::Renewed { .. }))
                        && let Err(error) = acknowledged()
                    {
                        *answer = Err(error);
                    }
                }
                Ok(Answer::Renew(answers))
            }
            answer => Ok(answer),
        }
    }
}
