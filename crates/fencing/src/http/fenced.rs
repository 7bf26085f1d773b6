use leasehold_core::Stamp;

use crate::rule::Admitted;

/// The admission of a request by a [`FenceLayer`](super::FenceLayer); the handler finds it in the
/// request's extensions.
///
/// The storage behind the handler has to compare [`stamp`](Self::stamp) too, if more than one
/// process writes to it, or if a write of a handler may go on after the handler has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fenced {
    /// The resource whose gate admitted the request.
    pub resource: Box<str>,
    /// The stamp that the request carried.
    pub stamp: Stamp,
    /// Whether the stamp is the first, newer than the last, or the same again.
    pub admitted: Admitted,
}
