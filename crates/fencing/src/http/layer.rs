use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::request::Parts;
use leasehold_core::{Clock, Instant, SettingError, Stamp, SystemClock};

use super::{
    lane::NoPlace,
    lanes::{Lanes, Place},
    name::NameFuture,
};
use crate::{
    error::{GateError, StaleFence},
    gate::FenceGate,
    refusal::Refusals,
    rule::Admitted,
};

type Name = dyn for<'a> Fn(&'a mut Parts) -> NameFuture<'a> + Send + Sync;

/// Refuses stale fences before an HTTP service, and holds each resource until it has answered.
///
/// Requests for one resource go one after another, in the order in which they were named; each asks the
/// gate when its turn has come. One whose fence is newer than those of all that are there tells the gate
/// before it waits. While requests for a resource are there, the layer remembers the highest stamp that
/// the gate has told, and refuses older ones at once, also those that wait. One that is refused
/// gets the answer of a [`Problem`](super::Problem): 412 for a stale fence, 428 for none, 400 for a
/// malformed one. One that is admitted carries [`Fenced`](super::Fenced) in its extensions.
///
/// The service behind is asked whether it is ready only for an admitted request, so who waits for a
/// resource takes no permit of a limit behind the layer. The layer itself is always ready: put what
/// limits or sheds all requests before it.
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
/// use leasehold_fencing::{MemoryGate, http::{FenceLayer, Unnamed}};
///
/// // `PUT /articles/7` writes to "articles/7", and so does `PUT /articles/07`: the name is made of
/// // the number that the handler uses, not of the path. Reading needs no fence.
/// let layer = FenceLayer::new(MemoryGate::new(), |request| Box::pin(async {
///     if request.method.is_safe() {
///         return Ok(None);
///     }
///     let path = request.uri.path().strip_prefix("/articles/");
///     let id: u64 = path.ok_or_else(|| Unnamed::because("no article"))?.parse()?;
///     request.extensions.insert(id); // for the handler
///     Ok(Some(format!("articles/{id}")))
/// }));
/// ```
#[derive(Clone)]
#[must_use = "a layer does nothing itself, wrap a service in it"]
pub struct FenceLayer {
    gate: Arc<dyn FenceGate>,
    name: Arc<Name>,
    lanes: Arc<Lanes>,
    refusals: Arc<Refusals>,
    clock: Arc<dyn Clock>,
    max_waiting: usize,
    max_wait: Duration,
}

impl FenceLayer {
    /// A layer before a gate, with what names the resource that a request writes to.
    ///
    /// A request that needs no fence is named `None`, and passes. One that cannot be named is
    /// answered 400.
    ///
    /// **Make the name of the value that the handler uses**: what its extractor tells, what is
    /// parsed, or the original address where that itself is what the handler writes to. One thing
    /// has many paths (`/articles/7`, `/articles/07` and `/articles/%37`), and inside of a nested
    /// router many things have one path. A late write under another name is admitted. Two texts in
    /// one name need something between them that neither can contain.
    ///
    /// Gates remember every resource that they have seen, so name only those that exist or that an
    /// authenticated client may make.
    pub fn new(
        gate: impl FenceGate,
        name: impl for<'a> Fn(&'a mut Parts) -> NameFuture<'a> + Send + Sync + 'static,
    ) -> Self {
        Self {
            gate: Arc::new(gate),
            name: Arc::new(name),
            lanes: Arc::default(),
            refusals: Arc::new(Refusals::new("http")),
            clock: Arc::new(SystemClock),
            max_waiting: 256,
            max_wait: Duration::from_secs(5),
        }
    }

    /// How many requests may wait for one resource; more are answered 503. Requests with an older
    /// fence do not count against one with a newer fence. Default: 256.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.max_waiting = requests;
        self
    }

    /// How long a request may take until the service behind has it, 10 ms to 1 h. Default: 5 s.
    ///
    /// It counts the wait for the requests before, for the gate, and for the service to be ready.
    /// The closure that names the resource is not counted. After that time the request is answered
    /// 503; the service behind has not seen it. How long that service takes is not limited.
    ///
    /// # Errors
    ///
    /// [`SettingError`] below 10 ms, and above 1 h.
    pub fn max_wait(mut self, wait: Duration) -> Result<Self, SettingError> {
        let range = Duration::from_millis(10)..=Duration::from_secs(60 * 60);
        self.max_wait = SettingError::check("wait", wait, range)?;
        Ok(self)
    }

    /// Another clock than that of the machine, for tests in virtual time.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Shuts out the holder before, when a lease is taken and before its first request.
    ///
    /// Unlike [`FenceGate::advance`] of the gate behind, it then waits until the request that holds
    /// the resource has been answered, so that nothing of an older holder comes after it. Requests that
    /// wait with an older fence are refused at once. The limits
    /// of number and time do not hold here: a handler that never ends is waited for without end.
    ///
    /// # Errors
    ///
    /// Those of [`FenceGate::advance`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the watermark has moved; it may be repeated.
    pub async fn advance(&self, resource: &str, presented: Stamp) -> Result<Admitted, GateError> {
        let mut place = match self.lanes.enter(resource, presented, usize::MAX) {
            Ok(place) => place,
            Err(NoPlace::Stale(highest)) => {
                return Err(self.refuse(resource, presented, highest).into());
            }
            // Not reached: a lane without a limit lets everybody in.
            Err(NoPlace::Full) => return self.gate.advance(resource, presented).await,
        };
        let advanced = self.shut_out(&place, resource, presented).await?;
        if let Err(highest) = place.turn().await {
            return Err(self.refuse(resource, presented, highest).into());
        }
        Ok(advanced)
    }

    /// How many resources are held or waited for at this moment.
    pub fn resources_in_use(&self) -> usize {
        self.lanes.len()
    }

    /// The resource that a request writes to.
    pub(super) fn name<'a>(&self, request: &'a mut Parts) -> NameFuture<'a> {
        (self.name)(request)
    }

    /// Enters the lane of a resource.
    pub(super) fn enter(&self, resource: &str, presented: Stamp) -> Result<Place, NoPlace> {
        self.lanes.enter(resource, presented, self.max_waiting.saturating_add(1))
    }

    /// Shuts out what is older, and sends away those in the lane that wait with it.
    pub(super) async fn shut_out(
        &self,
        place: &Place,
        resource: &str,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        let advanced = self.gate.advance(resource, presented).await;
        tell(place, presented, &advanced);
        advanced
    }

    /// Asks the gate, and tells those in the lane what it has seen.
    pub(super) async fn admit(
        &self,
        place: &Place,
        resource: &str,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        let admitted = self.gate.admit(resource, presented).await;
        tell(place, presented, &admitted);
        admitted
    }

    /// Counts and tells a refusal for which the gate need not be asked.
    pub(super) fn refuse(&self, resource: &str, presented: Stamp, highest: Stamp) -> StaleFence {
        self.refusals.refuse(resource, presented, highest)
    }

    /// Until when the service behind has a request that comes now.
    pub(super) fn deadline(&self) -> Instant {
        self.clock.now() + self.max_wait
    }

    /// Whether a deadline has passed.
    pub(super) fn is_past(&self, deadline: Instant) -> bool {
        self.clock.now() >= deadline
    }

    /// Waits for a future until a deadline; `None` when that has passed.
    pub(super) async fn before<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        // Most are ready at once, and need no timer.
        if let Poll::Ready(value) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
            return Some(value);
        }
        tokio::select! {
            biased;
            value = future => Some(value),
            () = self.clock.sleep_until(deadline) => None,
        }
    }
}

fn tell(place: &Place, presented: Stamp, judged: &Result<Admitted, GateError>) {
    match judged {
        Ok(_) => place.seen(presented),
        Err(GateError::Stale(StaleFence { highest, .. })) => place.seen(*highest),
        Err(_) => {}
    }
}

impl fmt::Debug for FenceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer")
            .field("gate", &self.gate)
            .field("resources_in_use", &self.resources_in_use())
            .field("max_waiting", &self.max_waiting)
            .field("max_wait", &self.max_wait)
            .finish_non_exhaustive()
    }
}
