use std::num::NonZeroU32;

/// What releasing a guard came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It was the last hold: the lease has ended, and the server confirmed it.
    Ended,
    /// The lease is still held by this many guards.
    StillHeld(NonZeroU32),
}
