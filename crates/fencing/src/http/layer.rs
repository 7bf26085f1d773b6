use std::{fmt, sync::Arc};

use http::request::Parts;
use leasehold_core::Stamp;
use tower_layer::Layer;

use super::{
    lanes::{Lanes, Place},
    service::FenceService,
};
use crate::{error::GateError, gate::FenceGate, rule::Admitted};

type Resource = dyn Fn(&Parts) -> Option<String> + Send + Sync;

/// Refuses stale fences before an HTTP service, and holds each resource until it has answered.
///
/// Requests for one resource go one after another, in the order in which they came; each asks the
/// gate when its turn has come. One that is refused gets the answer of a [`Problem`](super::Problem):
/// 412 for a stale fence, 428 for none, 400 for a malformed one. One that is admitted carries
/// [`Fenced`](super::Fenced) in its extensions.
///
/// The resource is free again when the service has answered, has panicked, or its future was
/// dropped because the client went away. What a handler leaves under way then is not guarded: a
/// task that it spawned, a command that its storage has received, a body that it still streams.
///
/// Wrap with one layer and its clones all that writes to the same resources, and once only: a
/// request that meets the layer again would wait for itself. A layer knows the requests of its own
/// process. Cloning is cheap.
///
/// ```
/// use leasehold_fencing::{MemoryGate, http::FenceLayer};
///
/// // `/articles/7` is the resource "articles/7"; reading needs no fence.
/// let layer = FenceLayer::new(MemoryGate::new(), |request| {
///     let writes = !request.method.is_safe();
///     writes.then(|| request.uri.path().trim_start_matches('/').to_owned())
/// });
/// ```
#[derive(Clone)]
#[must_use = "a layer does nothing itself, wrap a service in it"]
pub struct FenceLayer {
    gate: Arc<dyn FenceGate>,
    resource: Arc<Resource>,
    lanes: Arc<Lanes>,
    most_waiting: usize,
}

impl FenceLayer {
    /// A layer before a gate, with the resource that a request writes to.
    ///
    /// A request for which the closure returns nothing passes without a fence. Gates remember every
    /// resource that they have seen, so name only those that exist or that an authenticated
    /// client may make, and name each in one way only.
    pub fn new(
        gate: impl FenceGate,
        resource: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            gate: Arc::new(gate),
            resource: Arc::new(resource),
            lanes: Arc::default(),
            most_waiting: 256,
        }
    }

    /// How many requests may wait for one resource; more are answered 503. Default: 256.
    pub fn most_waiting(mut self, requests: usize) -> Self {
        self.most_waiting = requests;
        self
    }

    /// Shuts out the holder before, when a lease is taken and before its first request.
    ///
    /// Other than [`FenceGate::advance`] of the gate behind, it waits until the request that holds
    /// the resource has been answered, so that nothing of an older holder comes after it. The limit
    /// of those who wait does not hold here.
    ///
    /// # Errors
    ///
    /// Those of [`FenceGate::advance`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the watermark has moved; it may be repeated.
    pub async fn advance(&self, resource: &str, presented: Stamp) -> Result<Admitted, GateError> {
        if let Some(mut place) = self.lanes.enter(resource, usize::MAX) {
            place.turn().await;
            let advanced = self.gate.advance(resource, presented).await;
            drop(place);
            return advanced;
        }
        // Not reached: a lane without a limit lets everybody in.
        self.gate.advance(resource, presented).await
    }

    /// How many resources are held or waited for at this moment.
    pub fn resources_in_use(&self) -> usize {
        self.lanes.len()
    }

    /// The resource that a request writes to.
    pub(super) fn resource(&self, request: &Parts) -> Option<String> {
        (self.resource)(request)
    }

    /// Enters the lane of a resource, unless too many wait in it.
    pub(super) fn enter(&self, resource: &str) -> Option<Place> {
        self.lanes.enter(resource, self.most_waiting.saturating_add(1))
    }

    pub(super) fn gate(&self) -> &dyn FenceGate {
        &*self.gate
    }
}

impl fmt::Debug for FenceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer")
            .field("gate", &self.gate)
            .field("resources_in_use", &self.resources_in_use())
            .field("most_waiting", &self.most_waiting)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FenceService::new(inner, self.clone())
    }
}
