use http::{Request, Response};
use http_body_util::BodyExt;
use leasehold_testing::stamp;
use tower_layer::Layer;

use super::handler::{Handler, call, layer, request};
use crate::http::{FencedBody, Problem, headers::LEASE};
use crate::{FenceGate, GateError, GateFuture, MemoryGate, ResourceError, Stamp};
use leasehold_core::{StoreError, StoreErrorKind};

/// A gate that always fails with the same error.
#[derive(Debug)]
struct Failing(GateError);

impl FenceGate for Failing {
    fn admit<'a>(&'a self, _: &'a str, _: Stamp) -> GateFuture<'a> {
        Box::pin(async { Err(self.0.clone()) })
    }
}

/// The answer of a layer to a request that must not reach the handler.
async fn refusal(gate: impl FenceGate, request: Request<String>) -> (Response<()>, String) {
    let (handler, layer) = (Handler::default(), layer(gate));
    let response: Response<FencedBody<String>> = call(&layer.layer(handler.clone()), request).await;
    assert!(handler.log().is_empty());
    assert_eq!(layer.resources_in_use(), 0);
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (Response::from_parts(parts, ()), String::from_utf8(body.to_vec()).unwrap())
}

fn check(answer: &(Response<()>, String), problem: Problem, status: u16, words: &[&str]) {
    let (response, body) = answer;
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers().contains_key("retry-after"), problem.is_transient());
    let members = format!(
        r#"{{"type":"{}","title":"{}","status":{status},"detail":""#,
        problem.type_uri(),
        problem.title()
    );
    assert!(body.starts_with(&members), "{body}");
    for word in words {
        assert!(body.contains(word), "{word}: {body}");
    }
}

#[tokio::test]
async fn a_stale_fence_is_412() {
    let gate = MemoryGate::new();
    gate.write("/a", stamp(6, 2), || ()).unwrap();
    let answer = refusal(gate, request(stamp(5, 1), "")).await;
    let members = r#""resource":"/a","fence":5,"highest_fence":6}"#;
    check(&answer, Problem::StaleFence, 412, &[members, "acquire the lock again", r#"\"/a\""#]);
    assert!(!answer.1.contains(&stamp(6, 2).lease.to_string()));
}

#[tokio::test]
async fn an_equal_fence_of_another_lease_is_412() {
    let gate = MemoryGate::new();
    gate.write("/a", stamp(5, 2), || ()).unwrap();
    let answer = refusal(gate, request(stamp(5, 1), "")).await;
    check(&answer, Problem::StaleFence, 412, &[r#""fence":5,"highest_fence":5"#]);
}

#[tokio::test]
async fn a_missing_fence_is_428_and_a_malformed_one_400() {
    let bare = Request::put("/a").body(String::new()).unwrap();
    let answer = refusal(MemoryGate::new(), bare).await;
    check(&answer, Problem::FenceMissing, 428, &["leasehold-fence", "acquire the lock"]);

    let mut malformed = request(stamp(5, 1), "");
    malformed.headers_mut().insert(LEASE, "x".parse().unwrap());
    let answer = refusal(MemoryGate::new(), malformed).await;
    check(&answer, Problem::FenceMalformed, 400, &["leasehold-lease", "<runtime-uuid>:<number>"]);

    let mut twice = request(stamp(5, 1), "");
    twice.headers_mut().append(LEASE, "y".parse().unwrap());
    let answer = refusal(MemoryGate::new(), twice).await;
    check(&answer, Problem::FenceMalformed, 400, &["more than once"]);
}

#[tokio::test]
async fn a_gate_that_fails_is_not_a_stale_fence_and_tells_no_secrets() {
    let failing = |kind| {
        let error = StoreError::new(kind, "connection refused", "try again");
        Failing(error.from_endpoint("10.0.0.7:6379").into())
    };
    for kind in [StoreErrorKind::Definite, StoreErrorKind::Indeterminate] {
        let answer = refusal(failing(kind), request(stamp(5, 1), "")).await;
        check(&answer, Problem::GateUnavailable, 503, &["nothing was written", "repeat"]);
        assert!(!answer.1.contains("10.0.0.7"));
    }
    for kind in [StoreErrorKind::Config, StoreErrorKind::Corrupt] {
        let answer = refusal(failing(kind), request(stamp(5, 1), "")).await;
        check(&answer, Problem::GateBroken, 500, &["nothing was written", "log"]);
        assert!(!answer.1.contains("10.0.0.7"));
    }
}

/// A client chose a bad name: an operator has nothing to do.
#[tokio::test]
async fn a_name_that_no_gate_can_keep_is_400_and_no_error_of_the_server() {
    let unnameable = Failing(ResourceError::BreaksHashTag("/a}".into()).into());
    let answer = refusal(unnameable, request(stamp(5, 1), "")).await;
    check(&answer, Problem::ResourceMalformed, 400, &["nothing was written", r#"\"/a}\""#]);
}
