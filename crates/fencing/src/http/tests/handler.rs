use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http::{Request, Response};
use tokio::sync::Notify;
use tower_service::Service;

use crate::http::{FenceLayer, Fenced, put_stamp, read_stamp};
use crate::{FenceGate, Stamp};

/// A handler that logs when it begins and ends, and ends when the test says so.
#[derive(Debug, Default)]
pub(super) struct Handler {
    shared: Arc<Shared>,
    ready: bool,
}

#[derive(Debug, Default)]
struct Shared {
    log: Mutex<Vec<String>>,
    end: Notify,
}

impl Handler {
    /// What has happened so far.
    pub(super) fn log(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }

    /// Lets one waiting handler end, or the next one to come.
    pub(super) fn end_one(&self) {
        self.shared.end.notify_one();
    }
}

impl Clone for Handler {
    /// Only the service that was polled ready may be called.
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), ready: false }
    }
}

impl Service<Request<String>> for Handler {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        assert!(self.ready, "called without having been polled ready");
        self.ready = false;
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let stamp = read_stamp(request.headers()).ok();
            let fenced = request.extensions().get::<Fenced>().map(|fenced| fenced.stamp);
            assert!(fenced.is_none_or(|fenced| Some(fenced) == stamp));
            let who = stamp.map_or_else(|| "unfenced".into(), |stamp| stamp.fence.to_string());
            let log = |what: &str| shared.log.lock().unwrap().push(format!("{who} {what}"));
            log("begins");
            match request.body().as_str() {
                "slow" => shared.end.notified().await,
                "panic" => panic!("in the handler"),
                _ => {}
            }
            log("ends");
            Ok(Response::new("done".into()))
        })
    }
}

/// A layer whose resources are the paths of requests that write.
pub(super) fn layer(gate: impl FenceGate) -> FenceLayer {
    FenceLayer::new(gate, |request| {
        let name = (!request.method.is_safe()).then(|| request.uri.path().to_owned());
        Box::pin(async { Ok(name) })
    })
}

/// A request that writes to `/a`.
pub(super) fn request(stamp: Stamp, body: &str) -> Request<String> {
    let mut request = Request::put("/a").body(body.to_owned()).unwrap();
    put_stamp(request.headers_mut(), stamp);
    request
}

/// Calls a service as its contract says: ready first.
pub(super) fn call<S, R>(
    service: &S,
    request: Request<String>,
) -> impl Future<Output = Response<R>> + use<S, R>
where
    S: Service<Request<String>, Response = Response<R>, Error = Infallible> + Clone,
{
    let mut service = service.clone();
    async move {
        let Ok(()) = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
        let Ok(response) = service.call(request).await;
        response
    }
}

/// Lets all tasks run until none can go on.
pub(super) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
