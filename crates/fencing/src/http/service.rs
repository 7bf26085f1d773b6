use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::{body::FencedBody, layer::FenceLayer};

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

    /// Passes a request to the service when its turn has come and the gate has admitted it.
    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (layer, mut inner) = (Arc::clone(&self.layer), self.inner.clone());
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let place = match layer.place(&mut parts).await {
                Ok(place) => place,
                Err(answer) => return Ok(answer.into_response()),
            };
            // A service has no future that says when it is ready.
            let ready = poll_fn(|cx| inner.poll_ready(cx));
            let turn = match &place {
                None => ready.await.map(|()| None)?,
                Some(place) => match layer.admit(place, &mut parts, ready).await {
                    Ok((turn, ready)) => ready.map(|()| Some(turn))?,
                    Err(answer) => return Ok(answer.into_response()),
                },
            };
            let answer = inner.call(Request::from_parts(parts, body)).await;
            // The future of the service is dropped before the turn, also when this future unwinds: only
            // then is the resource free.
            drop(turn);
            answer.map(|response| response.map(FencedBody::of_service))
        })
    }
}
