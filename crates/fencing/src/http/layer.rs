use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use http::request::Parts;
use leasehold_core::{Clock, SettingError, Stamp, SystemClock, within};
use tokio::try_join;

use super::{
    answer::{Answer, Unnamed},
    headers::read_stamp,
    problem::Problem,
    queues::{QueuedRequest, RequestTurn, ResourceQueues},
};
use crate::{
    error::{GateError, StaleFence},
    gate::{Admitted, FenceGate, GateFuture, Refusals},
};

type Name = dyn for<'a> Fn(&'a mut Parts) -> NameFuture<'a> + Send + Sync;

/// Refuses stale fences before an HTTP service, and holds each resource until the service has
/// answered.
///
/// Requests for one resource are handled one after another, in the order in which they were named,
/// each once its turn has come and the gate has admitted it. If the fence of a new request is newer
/// than those of all requests in the layer, the layer tells the gate before the request waits.
/// While it has requests for a resource, it remembers the highest stamp that the gate has reported,
/// and refuses older ones at once, even those that wait already. A refused request is answered with
/// a [`Problem`]: 412 for a stale fence, 428 for no fence, 400 for a malformed one.
/// An admitted request carries [`Fenced`] in its extensions.
///
/// Only for an admitted request does the layer ask the service behind it whether it is ready: a
/// request that waits takes no permit of a concurrency limit behind the layer. The layer itself is
/// always ready: put limits and load shedding for all requests before it.
///
/// The resource is free again when the service has answered, has panicked, or its future was
/// dropped because the client went away. Work that goes on after that is not guarded: a task of the
/// handler, a command that its storage has received, a body that it still streams.
///
/// Use one layer and its clones for all services of a process that write to the same resources, and
/// wrap each service once: a request that passes twice would wait for itself. Cloning is cheap.
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
    queues: Arc<ResourceQueues>,
    refusals: Arc<Refusals>,
    clock: Arc<dyn Clock>,
    max_waiting: usize,
    max_wait: Duration,
}

impl FenceLayer {
    /// Makes a layer of a gate, and a closure that names the resource to which a request writes.
    ///
    /// The closure returns `None` for a request that needs no fence; such a request passes. If it
    /// returns an error, the answer is 400.
    ///
    /// **Make the name from the value that the handler uses**, parsed or extracted, or from the
    /// original address if the handler writes to that itself. One resource can have many paths
    /// (`/articles/7`, `/articles/07` and `/articles/%37`), and inside of a nested router many
    /// resources can have the same path: a late write under another name would be admitted. Two
    /// texts in one name need a separator that neither can contain.
    ///
    /// Gates remember every resource that they have seen, so name only resources that exist, or
    /// that an authenticated client may create.
    // ADR 0044
    pub fn new(
        gate: impl FenceGate,
        name: impl for<'a> Fn(&'a mut Parts) -> NameFuture<'a> + Send + Sync + 'static,
    ) -> Self {
        Self {
            gate: Arc::new(gate),
            name: Arc::new(name),
            queues: Arc::default(),
            refusals: Arc::new(Refusals::new("http")),
            clock: Arc::new(SystemClock),
            max_waiting: 256,
            max_wait: Duration::from_secs(5),
        }
    }

    /// Sets how many requests may wait for one resource; the answer to further ones is 503. Requests
    /// with an older fence do not count against a request with a newer fence. Default: 256.
    pub fn max_waiting(self, requests: usize) -> Self {
        Self { max_waiting: requests, ..self }
    }

    /// Sets how long a request may wait until the service behind gets it, 10 ms to 1 h. Default: 5 s.
    ///
    /// This is the time for the earlier requests, for the gate, and for the service to be ready;
    /// not that of the closure which names the resource, nor of the service itself. After it the
    /// answer is 503, and the service behind has not seen the request.
    ///
    /// # Errors
    ///
    /// [`SettingError`] below 10 ms, and above 1 h.
    pub fn max_wait(mut self, wait: Duration) -> Result<Self, SettingError> {
        let range = Duration::from_millis(10)..=Duration::from_secs(60 * 60);
        self.max_wait = SettingError::check("wait", wait, range)?;
        Ok(self)
    }

    /// Replaces the clock of the machine, for tests in virtual time.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Shuts out the former holder, after a lease is taken and before its first request.
    ///
    /// Unlike [`FenceGate::advance`] of the gate itself, it then waits until the request that holds
    /// the resource has been answered, so that no request of an older holder runs after it.
    /// `max_waiting` and `max_wait` do not apply: if a handler never ends, this method never
    /// returns.
    ///
    /// # Errors
    ///
    /// Those of [`FenceGate::advance`].
    ///
    /// # Cancel safety
    ///
    /// After a drop it is unknown whether the watermark has moved. The call may be repeated.
    pub async fn advance(&self, resource: &str, presented: Stamp) -> Result<Admitted, GateError> {
        let place = self.enter(resource, presented)?;
        let advanced = self.ask(&place, self.gate.advance(resource, presented)).await?;
        drop(self.turn(&place).await?);
        Ok(advanced)
    }

    /// Counts the resources that have a request which runs or waits at this moment.
    pub fn resources_in_use(&self) -> usize {
        self.queues.len()
    }

    /// Names the resource of a request, reads its stamp, and enters the queue; `None` if it needs no fence.
    pub(super) async fn place(&self, parts: &mut Parts) -> Result<Option<QueuedRequest>, Answer> {
        let Some(resource) = (self.name)(parts).await? else { return Ok(None) };
        let place = self.enter(&resource, read_stamp(&parts.headers)?);
        let place = place.map_err(|error| Answer::refused(error, &resource))?;
        if place.ahead > self.max_waiting {
            let what = format!("too many requests wait for {resource:?}, nothing was written");
            return Err(Answer::later(Problem::Busy, &format!("{what}; repeat this one")));
        }
        Ok(Some(place))
    }

    /// Waits for the turn of a request, asks the gate to admit it, and waits until the service is ready.
    /// Then `parts` have the [`Fenced`] for the handler. The service may be ready with a failure of its own.
    pub(super) async fn admit<'a, R>(
        &self,
        place: &'a QueuedRequest,
        parts: &mut Parts,
        ready: impl Future<Output = R>,
    ) -> Result<(RequestTurn<'a>, R), Answer> {
        let (resource, stamp) = (&*place.resource, place.presented);
        let clock = &*self.clock;
        let deadline = clock.now() + self.max_wait;
        let refused = |error| Answer::refused(error, resource);
        let slow = || {
            let what = format!("the requests for {resource:?} before this one took too long");
            Answer::later(Problem::Busy, &format!("{what}, nothing was written; repeat it"))
        };
        let asked = async |asked: GateFuture<'_>| {
            let judged = within(clock, deadline, self.ask(place, asked)).await;
            judged.ok_or_else(|| Answer::unanswered(resource))?.map_err(refused)
        };
        let advanced = async {
            // A new holder: waiting requests with an older fence must not run before it.
            if !place.outranks {
                return Ok(None);
            }
            asked(self.gate.advance(resource, stamp)).await.map(Some)
        };
        let turn = async {
            let turn = within(clock, deadline, self.turn(place)).await;
            turn.ok_or_else(slow)?.map_err(refused)
        };
        // Both at once: the next request of the same lease stays behind this one.
        let (advanced, turn) = try_join!(biased; advanced, turn)?;
        // Those that waited for a request that hung may get their turn only at their deadline, too
        // late to ask the gate.
        if clock.now() >= deadline {
            return Err(slow());
        }
        // The gate is asked only now: a newer request may have been admitted meanwhile. After an
        // advance it answers `Again`; the first answer is the one to report.
        let admitted = asked(self.gate.admit(resource, stamp)).await?;
        let Some(ready) = within(clock, deadline, ready).await else {
            let what =
                format!("the service was not ready in time, nothing was written to {resource:?}");
            return Err(Answer::later(Problem::Busy, &format!("{what}; repeat the request")));
        };
        let admitted = advanced.unwrap_or(admitted);
        parts.extensions.insert(Fenced { resource: resource.into(), stamp, admitted });
        Ok((turn, ready))
    }

    fn enter(&self, resource: &str, presented: Stamp) -> Result<QueuedRequest, GateError> {
        let place = self.queues.enter(resource, presented);
        place.map_err(|highest| self.refusals.refuse(resource, presented, highest).into())
    }

    async fn turn<'a>(&self, place: &'a QueuedRequest) -> Result<RequestTurn<'a>, GateError> {
        let refuse = |highest| self.refusals.refuse(&place.resource, place.presented, highest);
        place.turn().await.map_err(|highest| refuse(highest).into())
    }

    /// Awaits an answer of the gate, and tells its highest stamp to the requests in the queue.
    async fn ask(
        &self,
        place: &QueuedRequest,
        asked: GateFuture<'_>,
    ) -> Result<Admitted, GateError> {
        let judged = asked.await;
        match &judged {
            Ok(_) => place.seen(place.presented),
            Err(GateError::Stale(StaleFence { highest, .. })) => place.seen(*highest),
            Err(_) => {}
        }
        judged
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

/// The future of the name of the resource that a request writes to; `None` if the request needs no
/// fence.
type NameFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<String>, Unnamed>> + Send + 'a>>;

/// The admission of a request by a [`FenceLayer`]; the handler finds it in the
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
