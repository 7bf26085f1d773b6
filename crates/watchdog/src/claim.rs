use std::fmt;

/// An acquisition on its way, whose future may never be polled again.
///
/// The watchdog takes a lease over only when the acquiring future has returned it. Until then it
/// watches the claim, and lets it go when the future was not polled in time: a future that
/// nobody polls holds nothing for long.
pub trait Claim: fmt::Debug + Send + Sync {
    /// The claim window is over: take the acquisition back, unless its answer was taken; tells
    /// whether it was taken back.
    ///
    /// Must not block.
    fn expire(&self) -> bool;
}
