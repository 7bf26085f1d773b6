use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use leasehold_testing::stamp;
use tower_layer::Layer;
use tower_service::Service;

use super::handler::{Handler, call, layer, request, settle};
use crate::{Admitted, FenceGate, GateError, MemoryGate, Stamp};

/// The control without holding: it compares, and runs the handler if the stamp is admitted.
async fn only_compares(gate: Arc<MemoryGate>, handler: Handler, stamp: Stamp, body: &str) {
    if gate.admit("/a", stamp).await.is_ok() {
        let _: Response<String> = call(&handler, request(stamp, body)).await;
    }
}

#[tokio::test]
async fn a_newer_fence_waits_until_the_older_has_been_answered() {
    let handler = Handler::default();
    let service = layer(MemoryGate::new()).layer(handler.clone());
    let older = tokio::spawn(call(&service, request(stamp(5, 1), "slow")));
    settle().await;
    let newer = tokio::spawn(call(&service, request(stamp(6, 2), "")));
    settle().await;
    assert_eq!(handler.log(), ["5 begins"]);

    handler.end_one();
    assert_eq!(older.await.unwrap().status(), StatusCode::OK);
    assert_eq!(newer.await.unwrap().status(), StatusCode::OK);
    assert_eq!(handler.log(), ["5 begins", "5 ends", "6 begins", "6 ends"]);
}

#[tokio::test]
async fn without_holding_the_older_would_write_last() {
    let (handler, gate) = (Handler::default(), Arc::new(MemoryGate::new()));
    let older = only_compares(Arc::clone(&gate), handler.clone(), stamp(5, 1), "slow");
    let older = tokio::spawn(older);
    settle().await;
    only_compares(gate, handler.clone(), stamp(6, 2), "").await;
    handler.end_one();
    older.await.unwrap();
    assert_eq!(handler.log(), ["5 begins", "6 begins", "6 ends", "5 ends"]);
}

#[tokio::test]
async fn one_that_waited_is_judged_when_its_turn_has_come() {
    let handler = Handler::default();
    let service = layer(MemoryGate::new()).layer(handler.clone());
    let first = tokio::spawn(call(&service, request(stamp(5, 1), "slow")));
    settle().await;
    let newer = tokio::spawn(call(&service, request(stamp(7, 3), "")));
    settle().await;
    let between = tokio::spawn(call(&service, request(stamp(6, 2), "")));
    settle().await;
    handler.end_one();
    assert_eq!(first.await.unwrap().status(), StatusCode::OK);
    assert_eq!(newer.await.unwrap().status(), StatusCode::OK);
    assert_eq!(between.await.unwrap().status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(handler.log().last().unwrap(), "7 ends");
}

#[tokio::test]
async fn another_resource_and_a_request_that_reads_do_not_wait() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()));
    let service = layer.layer(handler.clone());
    let slow = tokio::spawn(call(&service, request(stamp(5, 1), "slow")));
    settle().await;
    let mut other = request(stamp(3, 2), "");
    *other.uri_mut() = "/b".parse().unwrap();
    assert_eq!(call(&service, other).await.status(), StatusCode::OK);
    let reads = Request::get("/a").body(String::new()).unwrap();
    assert_eq!(call(&service, reads).await.status(), StatusCode::OK);
    let all = ["5 begins", "3 begins", "3 ends", "unfenced begins", "unfenced ends"];
    assert_eq!(handler.log(), all);
    assert_eq!(layer.resources_in_use(), 1);
    handler.end_one();
    slow.await.unwrap();
}

#[tokio::test]
async fn a_client_that_goes_away_frees_the_resource() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()));
    let service = layer.layer(handler.clone());
    let older = tokio::spawn(call(&service, request(stamp(5, 1), "slow")));
    settle().await;
    let waits = tokio::spawn(call(&service, request(stamp(7, 3), "slow")));
    let newer = tokio::spawn(call(&service, request(stamp(7, 3), "")));
    settle().await;
    waits.abort();
    older.abort();
    assert!(older.await.is_err() && waits.await.is_err());
    assert_eq!(newer.await.unwrap().status(), StatusCode::OK);
    assert_eq!(handler.log(), ["5 begins", "7 begins", "7 ends"]);
    assert_eq!(layer.resources_in_use(), 0);
}

#[tokio::test]
async fn a_handler_that_panics_frees_the_resource_and_keeps_its_fence() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()));
    let service = layer.layer(handler);
    let panics = tokio::spawn(call(&service, request(stamp(5, 1), "panic")));
    assert!(panics.await.unwrap_err().is_panic());
    assert_eq!(layer.resources_in_use(), 0);
    let stale = call(&service, request(stamp(4, 0), "")).await;
    assert_eq!(stale.status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(call(&service, request(stamp(5, 1), "")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_advance_waits_for_the_request_that_holds_the_resource() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()).max_waiting(0));
    let service = layer.layer(handler.clone());
    let older = tokio::spawn(call(&service, request(stamp(5, 1), "slow")));
    settle().await;
    let advancing = layer.clone();
    let advance = tokio::spawn(async move { advancing.advance("/a", stamp(6, 2)).await });
    settle().await;
    assert!(!advance.is_finished());
    handler.end_one();
    assert_eq!(older.await.unwrap().status(), StatusCode::OK);
    assert_eq!(advance.await.unwrap(), Ok(Admitted::Newer));

    let stale = call(&service, request(stamp(5, 1), "")).await;
    assert_eq!(stale.status(), StatusCode::PRECONDITION_FAILED);
    assert!(matches!(layer.advance("/a", stamp(5, 1)).await, Err(GateError::Stale(_))));
    assert_eq!(layer.advance("/a", stamp(6, 2)).await, Ok(Admitted::Again));
    assert_eq!(layer.resources_in_use(), 0);
}

#[tokio::test]
async fn no_more_wait_than_may() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()).max_waiting(1));
    let service = layer.layer(handler.clone());
    let holds = tokio::spawn(call(&service, request(stamp(5, 1), "slow")));
    settle().await;
    let waits = tokio::spawn(call(&service, request(stamp(5, 1), "")));
    settle().await;
    let one_more = call(&service, request(stamp(5, 1), "")).await;
    assert_eq!(one_more.status(), StatusCode::SERVICE_UNAVAILABLE);
    handler.end_one();
    for answered in [holds, waits] {
        assert_eq!(answered.await.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn nothing_is_left_of_many_resources() {
    let (handler, layer) = (Handler::default(), layer(MemoryGate::new()));
    let service = layer.layer(handler);
    for round in 0..1000_u64 {
        let mut request = request(stamp(round + 1, 1), "");
        *request.uri_mut() = format!("/{round}").parse().unwrap();
        assert_eq!(call(&service, request).await.status(), StatusCode::OK);
        assert_eq!(layer.resources_in_use(), 0);
    }
}

/// The layer calls the same service instance that it polled ready, also when it is called again.
#[tokio::test]
async fn a_service_is_called_only_when_it_is_ready() {
    let mut service = layer(MemoryGate::new()).layer(Handler::default());
    for _ in 0..3 {
        let ready: Result<(), Infallible> = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
        assert_eq!(ready, Ok(()));
        let Ok(response) = service.call(request(stamp(5, 1), "")).await;
        assert_eq!(response.status(), StatusCode::OK);
    }
}
