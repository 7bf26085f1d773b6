use std::{fmt, future::Future, pin::Pin, sync::Arc};

use leasehold_core::Stamp;

use crate::{error::GateError, rule::Admitted};

/// A future of the verdict of a gate.
pub type GateFuture<'a> = Pin<Box<dyn Future<Output = Result<Admitted, GateError>> + Send + 'a>>;

/// A gate before a storage, which refuses stale fences for each resource.
///
/// A gate keeps the highest [`Stamp`] that it has admitted to each resource, its *watermark*, and
/// applies the rule of [`judge`](crate::judge) to the next. A resource is whatever one lock
/// protects: presenting fences of different locks for one resource would compare unlike things.
///
/// # Errors
///
/// Both methods fail alike:
///
/// - [`GateError::Stale`] when another holder has been admitted; each counts in
///   `leasehold_fence_rejected_total`.
/// - [`GateError::Store`] when the storage failed; this says nothing about the lease.
/// - [`GateError::Resource`] when the storage cannot keep a watermark for the resource.
/// - [`GateError::Conflict`] when a database repeatedly aborted the admission for others.
/// - [`GateError::NotShutOut`] when an object store makes ETags from the bytes alone: the watermark
///   has moved, but a holder that looked before may still write.
///
/// # Cancel safety
///
/// Dropping a future before it is ready leaves it unknown whether the watermark has moved. Both
/// methods may be repeated with the same stamp.
pub trait FenceGate: fmt::Debug + Send + Sync + 'static {
    /// Admits a newer fence, or an equal one of the same lease, and keeps it as the watermark.
    ///
    /// A write that follows is a second step, before which a newer holder may be admitted: use it
    /// only for a storage that cannot compare by itself, and prefer a gate's own fenced write.
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a>;

    /// Moves the watermark on when a lease is taken, before its first write.
    ///
    /// From then on the earlier holder is shut out, even if the new one never writes. The rule is
    /// that of [`admit`](Self::admit), so a stale holder already fails here.
    fn advance<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        self.admit(resource, presented)
    }
}

/// A shared gate is a gate, too.
impl<G: FenceGate + ?Sized> FenceGate for Arc<G> {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        (**self).admit(resource, presented)
    }

    fn advance<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        (**self).advance(resource, presented)
    }
}
