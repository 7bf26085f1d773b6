use std::{num::NonZeroU32, time::Duration};

/// What releasing a guard came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It was the last hold: the lease has ended. The server confirmed it, unless another task of
    /// this process went on with the lock.
    Ended,
    /// It was the last hold: the lease has ended, and the server confirmed that the lock stays
    /// closed for a while, as [`min_hold`](crate::Acquire::min_hold) asked.
    Kept {
        /// For how long it stays closed from the server's answer on.
        remaining: Duration,
    },
    /// The lease is still held by this many guards.
    StillHeld(NonZeroU32),
}
