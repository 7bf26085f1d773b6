//! Serves Prometheus text while a contended workload runs, and faults are injected now and then.
//!
//! ```sh
//! cargo run -p leasehold-services --example metrics_server -- 127.0.0.1:9464 60   # the default
//! cargo run -p leasehold-services --example metrics_server -- 127.0.0.1:9464 60 calm
//! ```
//!
//! The arguments are the address and for how many seconds. With `calm` there are no faults. Locks
//! are in the memory of this process, or on the server that `REDIS_URL` names.
#![expect(clippy::disallowed_methods, reason = "an example takes real time")]

mod calm;
mod faults;
mod workload;

use std::{env, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use leasehold::{LockRuntime, fencing::MemoryGate, metric::buckets};
use leasehold_services::{Failure, Outcome, Place, SHUTDOWN, end};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

/// Keeps the keys of this example apart.
const NAMESPACE: &str = "metrics-example";
/// Short, so that renewals can be seen.
const TTL: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> ExitCode {
    end(run().await)
}

async fn run() -> Result<ExitCode, Failure> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:9464".into());
    let seconds = arguments.next().unwrap_or_else(|| "60".into()).parse()?;
    serve(address.parse()?)?;
    println!("http://{address}/metrics, for {seconds} s");

    let (place, gate) = (Place::from_env(), Arc::new(MemoryGate::new()));
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    if arguments.next().as_deref() == Some("calm") {
        return calm::run(&place, end).await;
    }
    let (first, second) = (open(&place).await?, open(&place).await?);
    let (worked, injected) = tokio::join!(
        workload::run([&first, &second], &gate, end),
        faults::run(&place, [&first, &second], &gate, end),
    );
    let (worked, injected) = (worked?, injected?);
    let left = first.shutdown(SHUTDOWN).await.held + second.shutdown(SHUTDOWN).await.held;
    Ok(Outcome::new()
        .fact("writes", worked.accepted)
        .fact("losses provoked", injected.losses)
        .fact("stale writes refused", injected.refused)
        .holds("no write was lost", worked.accepted == worked.shown)
        .holds("every stale write was refused", injected.accepted == 0 && injected.refused > 0)
        .holds("nothing is held at the end", left == 0)
        .print())
}

/// Serves the metrics of this process, with buckets that fit.
fn serve(address: SocketAddr) -> Result<(), Failure> {
    let mut builder = PrometheusBuilder::new().with_http_listener(address);
    for (name, bounds) in buckets() {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.into()), bounds)?;
    }
    Ok(builder.install()?)
}

async fn open(place: &Place) -> Result<LockRuntime, Failure> {
    place.open(LockRuntime::builder().namespace(NAMESPACE).service("metrics").ttl(TTL)).await
}
