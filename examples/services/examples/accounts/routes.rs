use std::time::Duration;

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use leasehold::LockRuntime;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use crate::books::Books;

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) locks: LockRuntime,
    pub(crate) books: Books,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) stopping: watch::Receiver<bool>,
}

/// How long a client waits for an account that others use.
const WAIT: Duration = Duration::from_secs(5);

pub(crate) fn all(service: Service) -> Router {
    Router::new()
        .route("/accounts/{account}/deposits/{amount}", post(deposit))
        .route("/accounts/{account}", get(balance))
        .route("/health/live", get(StatusCode::OK))
        .route("/health/ready", get(ready))
        .route("/metrics", get(async |State(service): State<Service>| service.metrics.render()))
        .with_state(service)
}

/// Answers with the new balance. What goes wrong has an answer of its own: see `status()` of the errors.
async fn deposit(
    State(Service { locks, books, .. }): State<Service>,
    Path((account, amount)): Path<(i64, u32)>,
) -> Result<String, Response> {
    let lock = locks.lock(format!("account/{account}")).map_err(IntoResponse::into_response)?;
    let lock = lock.class("accounts").acquire().wait(WAIT);
    let deposited =
        lock.with(async |lease| books.deposit(account, amount.into(), lease.stamp()).await);
    let balance = deposited.await.map_err(IntoResponse::into_response)?;
    Ok(balance.to_string())
}

/// Reading needs no lock.
async fn balance(
    State(service): State<Service>,
    Path(account): Path<i64>,
) -> Result<String, Response> {
    let balance = service.books.balance(account).await.map_err(IntoResponse::into_response)?;
    Ok(balance.to_string())
}

/// Whether this copy should get requests: it does not stop, and both servers answer.
async fn ready(State(service): State<Service>) -> Result<&'static str, (StatusCode, String)> {
    let not_ready = |why: String| (StatusCode::SERVICE_UNAVAILABLE, why);
    if *service.stopping.borrow() {
        return Err(not_ready("this copy is about to end".into()));
    }
    let health = service.locks.health();
    if !health.is_ready() {
        return Err(not_ready(format!("the locks: {health}")));
    }
    let counted = service.books.total().await;
    counted.map_err(|error| not_ready(format!("the books: {error}")))?;
    Ok("ready")
}
