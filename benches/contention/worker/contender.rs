use std::future::Future;

use crate::Failure;

/// One task that wants the lock again and again.
pub(crate) trait Contender: Send + 'static {
    /// What it has while it has the lock.
    type Held: Send;

    /// Waits for the lock.
    fn acquire(&mut self) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    /// Gives it back.
    fn release(&mut self, held: Self::Held) -> impl Future<Output = Result<(), Failure>> + Send;
}
