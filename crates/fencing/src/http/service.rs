use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body_util::{Either, Full};
use tower_service::Service;

use super::{answer::Answer, fenced::Fenced, layer::FenceLayer};

/// The body of an answer: the service's own, or that of a refusal.
pub type FencedBody<B> = Either<B, Full<<B as http_body::Body>::Data>>;

/// The answer of a [`FenceService`], on its way.
pub type FenceFuture<B, E> =
    Pin<Box<dyn Future<Output = Result<Response<FencedBody<B>>, E>> + Send>>;

/// A service behind a [`FenceLayer`].
///
/// Its errors are those of the service behind; a refusal is an answer.
#[derive(Clone)]
pub struct FenceService<S> {
    inner: S,
    layer: FenceLayer,
}

impl<S> FenceService<S> {
    pub(super) fn new(inner: S, layer: FenceLayer) -> Self {
        Self { inner, layer }
    }
}

impl<S> fmt::Debug for FenceService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceService").field("layer", &self.layer).finish_non_exhaustive()
    }
}

impl<S, A, B> Service<Request<A>> for FenceService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    A: Send + 'static,
    B: http_body::Body + 'static,
    B::Data: From<String>,
{
    type Response = Response<FencedBody<B>>;
    type Error = S::Error;
    type Future = FenceFuture<B, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        // The service that was polled ready takes the request, its clone has to be polled first.
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        Box::pin(pass(self.layer.clone(), inner, request))
    }
}

/// Lets a request through when its turn has come and the gate admits it.
async fn pass<S, A, B>(
    layer: FenceLayer,
    mut inner: S,
    request: Request<A>,
) -> Result<Response<FencedBody<B>>, S::Error>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: http_body::Body,
    B::Data: From<String>,
{
    let (mut parts, body) = request.into_parts();
    let Some(resource) = layer.resource(&parts) else {
        let answer = inner.call(Request::from_parts(parts, body)).await;
        return answer.map(|response| response.map(Either::Left));
    };
    let presented = match Answer::unless_stamped(&parts.headers) {
        Ok(stamp) => stamp,
        Err(answer) => return Ok(answer.into_response()),
    };
    let Some(mut place) = layer.enter(&resource) else {
        return Ok(Answer::busy(&resource).into_response());
    };
    place.turn().await;
    // Asked only now: while this one waited, a newer one may have passed.
    let admitted = match layer.gate().admit(&resource, presented).await {
        Ok(admitted) => admitted,
        Err(error) => return Ok(Answer::refused(error, &resource).into_response()),
    };
    parts.extensions.insert(Fenced { resource: resource.into(), stamp: presented, admitted });
    let answer = inner.call(Request::from_parts(parts, body)).await;
    // The resource is free only when the service's future is gone, here and when this one is
    // dropped or unwound.
    drop(place);
    answer.map(|response| response.map(Either::Left))
}
