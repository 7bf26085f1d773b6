use leasehold_core::Stamp;

use crate::rule::Admitted;

/// What a [`FenceLayer`](super::FenceLayer) admitted; the handler finds it in the request's extensions.
///
/// The storage behind the handler compares [`stamp`](Self::stamp) once more where more than one
/// process writes to it, or where a handler may leave a write under way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fenced {
    /// The resource whose gate admitted the request.
    pub resource: Box<str>,
    /// What the request presented.
    pub stamp: Stamp,
    /// How it stood to the fences before it.
    pub admitted: Admitted,
}
