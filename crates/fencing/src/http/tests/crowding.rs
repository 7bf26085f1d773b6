use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use leasehold_testing::{ManualClock, stamp};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
};
use tower_layer::Layer;
use tower_service::Service;

use super::handler::{Handler, call, layer, request, settle};
use crate::{
    Admitted, FenceGate, GateFuture, MemoryGate, Stamp,
    http::{FenceService, FencedBody},
};

type Body = FencedBody<String>;
type Answer = JoinHandle<Response<Body>>;

/// Sends a request, and runs all tasks until none can go on.
async fn send<S>(service: &S, stamp: Stamp, body: &str) -> Answer
where
    S: Service<Request<String>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    let answer = tokio::spawn(call(service, request(stamp, body)));
    settle().await;
    answer
}

async fn status(answer: Answer) -> StatusCode {
    answer.await.unwrap().status()
}

#[tokio::test]
async fn requests_that_are_long_stale_take_no_place_in_a_queue() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()).max_waiting(4));
    let service = layer.layer(handler.clone());
    let holds = send(&service, stamp(5, 5), "slow").await;
    for _ in 0..4 {
        let stale = send(&service, stamp(1, 1), "").await;
        assert!(stale.is_finished(), "a stale request waits");
        assert_eq!(status(stale).await, StatusCode::PRECONDITION_FAILED);
    }
    let newer = [send(&service, stamp(6, 6), "").await, send(&service, stamp(6, 6), "").await];
    handler.end_one();
    assert_eq!(status(holds).await, StatusCode::OK);
    for newer in newer {
        assert_eq!(status(newer).await, StatusCode::OK);
    }
    assert_eq!(layer.resources_in_use(), 0);
}

#[tokio::test]
async fn a_new_holder_does_not_wait_behind_the_requests_of_the_former() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()).max_waiting(3));
    let service = layer.layer(handler.clone());
    let holds = send(&service, stamp(5, 5), "slow").await;
    let mut former = Vec::new();
    for _ in 0..3 {
        former.push(send(&service, stamp(5, 5), "").await);
    }
    assert_eq!(
        status(send(&service, stamp(5, 5), "").await).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let newer = send(&service, stamp(6, 6), "").await;
    for former in former {
        assert!(former.is_finished(), "it goes on waiting");
        assert_eq!(status(former).await, StatusCode::PRECONDITION_FAILED);
    }
    assert!(!newer.is_finished(), "a request that began is waited for");
    handler.end_one();
    assert_eq!((status(holds).await, status(newer).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(handler.log(), ["5 begins", "5 ends", "6 begins", "6 ends"]);
    assert_eq!(layer.resources_in_use(), 0);
}

#[tokio::test]
async fn an_advance_sends_away_those_that_wait_with_an_older_fence() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()));
    let service = layer.layer(handler.clone());
    let holds = send(&service, stamp(5, 5), "slow").await;
    let waits = send(&service, stamp(5, 5), "").await;
    let advancing = layer.clone();
    let advance = tokio::spawn(async move { advancing.advance("/a", stamp(6, 6)).await });
    settle().await;
    assert!(waits.is_finished() && !advance.is_finished());
    assert_eq!(status(waits).await, StatusCode::PRECONDITION_FAILED);
    handler.end_one();
    assert_eq!(status(holds).await, StatusCode::OK);
    assert_eq!(advance.await.unwrap().unwrap(), Admitted::Newer);
}

#[tokio::test]
async fn one_whose_fence_is_older_than_one_that_waits_is_refused_at_once() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()));
    let service = layer.layer(handler.clone());
    let first = send(&service, stamp(5, 5), "slow").await;
    let newer = send(&service, stamp(6, 6), "slow").await;
    let waits = send(&service, stamp(5, 5), "").await;
    let same_lease = send(&service, stamp(6, 6), "").await;
    assert!(waits.is_finished() && !newer.is_finished());
    assert_eq!(status(waits).await, StatusCode::PRECONDITION_FAILED);
    handler.end_one();
    assert_eq!(status(first).await, StatusCode::OK);
    handler.end_one();
    assert_eq!(status(newer).await, StatusCode::OK);
    assert_eq!(status(same_lease).await, StatusCode::OK);
}

/// A service with three permits; polling it ready takes one, as with the limits of `tower`.
struct Limited {
    inner: Handler,
    permits: Arc<Semaphore>,
    acquiring: Option<Pin<Box<dyn Future<Output = OwnedSemaphorePermit> + Send>>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Limited {
    fn new(inner: &Handler) -> Self {
        let permits = Arc::new(Semaphore::new(3));
        Self { inner: inner.clone(), permits, acquiring: None, permit: None }
    }
}

impl Clone for Limited {
    fn clone(&self) -> Self {
        let (inner, permits) = (self.inner.clone(), Arc::clone(&self.permits));
        Self { inner, permits, acquiring: None, permit: None }
    }
}

impl Service<Request<String>> for Limited {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.permit.is_none() {
            let permits = Arc::clone(&self.permits);
            let acquiring = self.acquiring.get_or_insert_with(|| {
                Box::pin(async move { permits.acquire_owned().await.expect("never closed") })
            });
            self.permit = Some(std::task::ready!(acquiring.as_mut().poll(cx)));
            self.acquiring = None;
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let permit = self.permit.take().expect("polled ready");
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(permit);
            answer
        })
    }
}

#[tokio::test]
async fn who_waits_for_a_resource_holds_no_permit_of_the_service_behind() {
    let handler = Handler::default();
    let service: FenceService<_> = layer(MemoryGate::new()).layer(Limited::new(&handler));
    let mut crowd = vec![send(&service, stamp(5, 5), "slow").await];
    for _ in 0..3 {
        crowd.push(send(&service, stamp(5, 5), "").await);
    }
    let mut other = request(stamp(3, 3), "");
    *other.uri_mut() = "/b".parse().unwrap();
    let other = tokio::spawn(call(&service, other));
    settle().await;
    assert!(other.is_finished(), "another resource waits for those who wait");
    assert_eq!(status(other).await, StatusCode::OK);
    handler.end_one();
    for answer in crowd {
        assert_eq!(status(answer).await, StatusCode::OK);
    }
}

/// A storage that hangs: it never answers, and counts its calls.
#[derive(Debug, Default)]
struct Hanging(Arc<AtomicUsize>);

impl FenceGate for Hanging {
    fn admit<'a>(&'a self, _: &'a str, _: Stamp) -> GateFuture<'a> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_storage_that_hangs_keeps_nobody_for_longer_than_one_wait() {
    let (handler, asked, clock) = (Handler::default(), Arc::default(), ManualClock::new());
    let layer = layer(Hanging(Arc::clone(&asked))).max_wait(Duration::from_secs(5)).unwrap();
    let layer = layer.clock(Arc::new(clock.clone()));
    let service = layer.layer(handler.clone());
    let mut crowd = Vec::new();
    for _ in 0..8 {
        crowd.push(send(&service, stamp(5, 5), "").await);
    }
    clock.advance(Duration::from_millis(4_999));
    settle().await;
    assert!(crowd.iter().all(|answer| !answer.is_finished()));
    clock.advance(Duration::from_millis(1));
    settle().await;
    for answer in crowd {
        assert!(answer.is_finished(), "it waits for longer");
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()["retry-after"], "1");
    }
    assert!(handler.log().is_empty());
    assert_eq!((layer.resources_in_use(), asked.load(Ordering::Relaxed)), (0, 1));
}

/// A storage that answers each call when the test says so.
#[derive(Debug)]
struct Slow(MemoryGate, Arc<Semaphore>);

impl FenceGate for Slow {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(async move {
            self.1.acquire().await.expect("never closed").forget();
            self.0.admit(resource, presented).await
        })
    }
}

/// The first one tells the gate before it waits; the second has no need to.
#[tokio::test]
async fn requests_of_a_new_lease_keep_their_order() {
    let (handler, calls) = (Handler::default(), Arc::new(Semaphore::new(1)));
    let layer = layer(Slow(MemoryGate::new(), Arc::clone(&calls)));
    let service = layer.layer(handler.clone());
    let former = send(&service, stamp(5, 5), "slow").await;
    let first = send(&service, stamp(6, 6), "slow").await;
    let second = send(&service, stamp(6, 6), "").await;
    handler.end_one();
    assert_eq!(status(former).await, StatusCode::OK);
    calls.add_permits(3);
    settle().await;
    assert_eq!(handler.log(), ["5 begins", "5 ends", "6 begins"]);
    assert!(!first.is_finished() && !second.is_finished());
    handler.end_one();
    assert_eq!((status(first).await, status(second).await), (StatusCode::OK, StatusCode::OK));
}

#[tokio::test]
async fn a_slow_handler_keeps_its_turn_and_those_behind_it_are_answered_in_time() {
    let (handler, clock) = (Handler::default(), ManualClock::new());
    let layer = layer(MemoryGate::new()).clock(Arc::new(clock.clone()));
    let service = layer.layer(handler.clone());
    let slow = send(&service, stamp(5, 5), "slow").await;
    let waits = send(&service, stamp(6, 6), "").await;
    clock.advance(Duration::from_secs(5));
    settle().await;
    assert!(waits.is_finished() && !slow.is_finished());
    assert_eq!(status(waits).await, StatusCode::SERVICE_UNAVAILABLE);
    handler.end_one();
    assert_eq!(status(slow).await, StatusCode::OK);
    // The new holder's request did not reach the handler, but it has shut out the former holder.
    let former = send(&service, stamp(5, 5), "").await;
    assert_eq!(status(former).await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(status(send(&service, stamp(6, 6), "").await).await, StatusCode::OK);
}

#[tokio::test]
async fn a_service_that_is_not_ready_in_time_is_told_as_such() {
    let (handler, clock) = (Handler::default(), ManualClock::new());
    let layer = layer(MemoryGate::new()).clock(Arc::new(clock.clone()));
    let limited = Limited::new(&handler);
    let permits = Arc::clone(&limited.permits).acquire_many_owned(3).await.unwrap();
    let service: FenceService<_> = layer.layer(limited);
    let waits = send(&service, stamp(5, 5), "").await;
    clock.advance(Duration::from_secs(5));
    settle().await;
    assert!(waits.is_finished());
    let answer = waits.await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("was not ready in time, nothing was written"), "{body}");
    assert!(handler.log().is_empty());
    drop(permits);
    assert_eq!(status(send(&service, stamp(5, 5), "").await).await, StatusCode::OK);
}
