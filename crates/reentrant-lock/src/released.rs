use std::num::NonZeroU32;

/// What releasing a guard came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It was the last hold: the lease has ended. The server confirmed it, unless another task of
    /// this process went on with the lock.
    Ended,
    /// The lease is still held by this many guards.
    StillHeld(NonZeroU32),
}
