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
