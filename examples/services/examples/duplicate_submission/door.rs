use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use leasehold::{
    LockRuntime,
    error::NameError,
    once::{Begun, Duplicate, Once, Progress},
};
use serde_json::json;

use crate::form::WINDOW;

/// The header by which a client names what it submits: the same for each repetition.
pub(crate) const KEY: &str = "idempotency-key";

/// Lets the first request with a key through, with its stamp, and answers the others at once.
pub(crate) async fn once(
    State(locks): State<LockRuntime>,
    mut request: Request,
    next: Next,
) -> Response {
    let door = match door(&locks, request.headers()) {
        Ok(Some(door)) => door,
        Ok(None) => return problem(StatusCode::BAD_REQUEST, &format!("send a header {KEY}")),
        Err(error) => return problem(StatusCode::BAD_REQUEST, &format!("{KEY}: {error}")),
    };
    let run = match door.begin().await {
        Ok(Begun::First(run)) => run,
        Ok(Begun::Duplicate(first)) => return duplicate(&first),
        Err(error) => return problem(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    };
    request.extensions_mut().insert(run.stamp());
    // A client that hangs up drops this future, and the run with it: the door is open again.
    let answer = tokio::select! {
        biased;
        end = run.lost() => {
            return problem(StatusCode::SERVICE_UNAVAILABLE, &format!("given up: {end:?}"));
        }
        answer = next.run(request) => answer,
    };
    if !answer.status().is_success() {
        // If this is not answered, the door opens after the ttl.
        let _ = run.fail().await;
    } else if let Err(error) = run.succeed().await {
        // The work is done, even if the door is not closed: the books refuse a second run.
        eprintln!("{error}");
    }
    answer
}

fn door(locks: &LockRuntime, headers: &HeaderMap) -> Result<Option<Once>, NameError> {
    let key = headers.get(KEY).and_then(|key| key.to_str().ok());
    let door = |key| Ok(locks.once(format!("submit/{key}"))?.window(WINDOW));
    key.map(door).transpose()
}

/// Since when, by whom, whether it is done, and when to ask again.
fn duplicate(first: &Duplicate) -> Response {
    let progress = match first.progress {
        Progress::Running => "running",
        Progress::Done => "done",
    };
    let body = json!({
        "progress": progress,
        "since_seconds": first.since.as_secs_f64(),
        "holder": first.holder,
        "closed_seconds": first.remaining.as_secs_f64(),
    });
    let again = first.remaining.as_secs_f64().ceil().to_string();
    let headers = [(header::RETRY_AFTER, again), (header::CONTENT_TYPE, JSON.into())];
    (StatusCode::CONFLICT, headers, body.to_string()).into_response()
}

fn problem(status: StatusCode, detail: &str) -> Response {
    let body = json!({ "detail": detail }).to_string();
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

const JSON: &str = "application/json";

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use axum::{
        Router,
        body::{Body, to_bytes},
        middleware,
        routing::post,
    };
    use leasehold::{
        LockName,
        testing::{Failure, ManualClock, TestStore},
    };
    use tower_service::Service;

    use super::*;

    /// A service behind the door, on a clock and a store of the test.
    struct Scene {
        clock: Arc<ManualClock>,
        store: TestStore,
        runs: Arc<AtomicUsize>,
        app: Router,
    }

    impl Scene {
        /// In the first run of the handler an operator ends its lease.
        fn new(first_is_lost: bool) -> Self {
            let clock = Arc::new(ManualClock::new());
            let store = TestStore::new(clock.clone());
            let builder = LockRuntime::builder().clock(clock.clone());
            let locks = builder.on_store(Arc::new(store.clone())).expect("a runtime");
            let runs = Arc::new(AtomicUsize::new(0));
            let (operator, counted) = (store.clone(), Arc::clone(&runs));
            let handler = async move || {
                if counted.fetch_add(1, Ordering::SeqCst) == 0 && first_is_lost {
                    let lock = LockName::new("submit/7").expect("a name");
                    assert!(operator.take_away(&lock).await);
                    pending::<()>().await;
                }
                StatusCode::CREATED
            };
            let app = Router::new().route("/", post(handler));
            let app = app.layer(middleware::from_fn_with_state(locks, once));
            Self { clock, store, runs, app }
        }

        /// Submits form 7, and lets time pass; the status and the text of the answer.
        async fn submit(&mut self) -> (StatusCode, String) {
            let request = Request::post("/").header(KEY, "7").body(Body::empty());
            let call = self.app.call(request.expect("a request"));
            let (answer, ()) = tokio::join!(call, self.clock.travel(Duration::from_secs(30)));
            let (answer, body) = answer.expect("an answer").into_parts();
            let body = to_bytes(body, 65_536).await.expect("a body");
            (answer.status, String::from_utf8_lossy(&body).into_owned())
        }

        fn runs(&self) -> usize {
            self.runs.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn a_run_that_loses_its_lease_is_given_up_and_the_door_is_open_again() {
        let mut scene = Scene::new(true);
        let (status, body) = scene.submit().await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        assert!(body.contains("Lost(ForceReleased)"), "{body}");
        assert_eq!(scene.submit().await.0, StatusCode::CREATED);
        assert_eq!(scene.submit().await.0, StatusCode::CONFLICT);
        assert_eq!(scene.runs(), 2);
    }

    #[tokio::test]
    async fn nothing_runs_while_the_server_is_away() {
        let mut scene = Scene::new(false);
        for failure in [Failure::Unreachable, Failure::Refuses] {
            scene.store.fail(failure);
            let (status, body) = scene.submit().await;
            assert_eq!((status, scene.runs()), (StatusCode::SERVICE_UNAVAILABLE, 0), "{body}");
        }
        scene.store.recover();
        assert_eq!(scene.submit().await.0, StatusCode::CREATED);
    }

    #[tokio::test]
    async fn a_request_whose_answer_was_lost_leaves_the_door_open() {
        let mut scene = Scene::new(false);
        scene.store.fail(Failure::AnswersLost);
        // The server has granted the lease, and the answer was lost: nothing runs, nothing is held.
        assert_eq!(scene.submit().await.0, StatusCode::SERVICE_UNAVAILABLE);
        scene.store.recover();
        scene.clock.travel(Duration::from_secs(60)).await;
        assert_eq!((scene.submit().await.0, scene.runs()), (StatusCode::CREATED, 1));
    }
}
