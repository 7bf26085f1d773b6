use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use leasehold_core::Stamp;
use tower_layer::Layer;
use tower_service::Service;

use super::{answer::Answer, layer::FenceLayer};
use crate::gate::Admitted;

/// The future of the answer of a [`FenceService`].
type FenceFuture<B, E> = Pin<Box<dyn Future<Output = Result<Response<FencedBody<B>>, E>> + Send>>;

/// A service behind a [`FenceLayer`].
///
/// Its errors are those of the service behind it; a refusal is an answer, not an error.
#[derive(Clone)]
pub struct FenceService<S> {
    inner: S,
    layer: Arc<FenceLayer>,
}

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

impl<S> Layer<S> for FenceLayer {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> FenceService<S> {
        FenceService { inner, layer: Arc::new(self.clone()) }
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
    B: Body + 'static,
    B::Data: From<String>,
{
    type Response = Response<FencedBody<B>>;
    type Error = S::Error;
    type Future = FenceFuture<B, S::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // A ready service may hold a permit, so it is asked only when a request has its turn.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        Box::pin(pass(Arc::clone(&self.layer), self.inner.clone(), request))
    }
}

/// Passes a request to the service when its turn has come and the gate has admitted it.
async fn pass<S, A, B>(
    layer: Arc<FenceLayer>,
    mut inner: S,
    request: Request<A>,
) -> Result<Response<FencedBody<B>>, S::Error>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Body,
    B::Data: From<String>,
{
    let (mut parts, body) = request.into_parts();
    let resource = match (layer.name)(&mut parts).await {
        Ok(Some(resource)) => resource,
        Ok(None) => {
            poll_fn(|cx| inner.poll_ready(cx)).await?;
            let answer = inner.call(Request::from_parts(parts, body)).await;
            return answer.map(|response| response.map(FencedBody::of_service));
        }
        Err(unnamed) => return Ok(Answer::Unnamed(unnamed).into_response()),
    };
    let place = match layer.place(&resource, &parts.headers) {
        Ok(place) => place,
        Err(answer) => return Ok(answer.into_response()),
    };
    let deadline = layer.clock.now() + layer.max_wait;
    let (turn, admitted) = match layer.admit(&place, deadline).await {
        Ok(admitted) => admitted,
        Err(answer) => return Ok(answer.into_response()),
    };
    let Some(ready) = layer.before(deadline, poll_fn(|cx| inner.poll_ready(cx))).await else {
        return Ok(Answer::NotReady(resource.into()).into_response());
    };
    ready?;
    let stamp = place.presented;
    parts.extensions.insert(Fenced { resource: resource.into(), stamp, admitted });
    let answer = inner.call(Request::from_parts(parts, body)).await;
    // The future of the service is dropped before the turn, also when this future unwinds: only
    // then is the resource free.
    drop(turn);
    answer.map(|response| response.map(FencedBody::of_service))
}

/// The body of an answer of a [`FenceService`](super::FenceService): that of the service behind it,
/// or the reason of a refusal.
// ADR 0020
pub struct FencedBody<B: Body>(Content<B>);

enum Content<B: Body> {
    /// Boxed, so that it can be polled without being pinned here.
    Service(Pin<Box<B>>),
    /// `None` when it was read.
    Refusal(Option<B::Data>, u64),
}

// Nothing is pinned in it.
impl<B: Body> Unpin for FencedBody<B> {}

impl<B: Body> FencedBody<B> {
    pub(super) fn of_service(body: B) -> Self {
        Self(Content::Service(Box::pin(body)))
    }

    pub(super) fn of_refusal(text: String) -> Self
    where
        B::Data: From<String>,
    {
        let bytes = text.len() as u64;
        Self(Content::Refusal(Some(B::Data::from(text)), bytes))
    }
}

impl<B: Body> Body for FencedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut self.0 {
            Content::Service(body) => body.as_mut().poll_frame(cx),
            Content::Refusal(text, _) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Service(body) => body.is_end_stream(),
            Content::Refusal(text, _) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Service(body) => body.size_hint(),
            Content::Refusal(text, bytes) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |_| *bytes))
            }
        }
    }
}

impl<B: Body> fmt::Debug for FencedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencedBody").finish_non_exhaustive()
    }
}
