//! Each request of a service as a trace, with its acquires and holds, printed as OpenTelemetry has it.
//!
//! ```sh
//! cargo run -p leasehold-services --example traces
//! cargo run -p leasehold-services --example traces -- off   # a filter that lets no span of a lock through
//! ```
//!
//! Two instances contend for one lock; one request finds it taken, and one loses its lease to an operator. At the end
//! the program checks what the trace shows. Locks are in the memory of this process, or on the server that `REDIS_URL`
//! names.
#![expect(clippy::disallowed_methods, reason = "an example takes real time")]

mod seen;

use std::{env, process::ExitCode, time::Duration};

use leasehold::{LockRuntime, ReentrantLock};
use leasehold_services::{Failure, Outcome, Place, SHUTDOWN, end};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use seen::Seen;
use tracing::{Instrument, info_span};
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// Keeps the keys of this example apart.
const NAMESPACE: &str = "traces-example";
/// The spans of locks are of level DEBUG, beside a log at INFO.
const FILTER: &str = "info,leasehold::spans=debug";
/// For the control: nothing that is checked is true without them.
const OFF: &str = "info";
/// For how long a request works under the lock.
const WORK: Duration = Duration::from_millis(20);

#[tokio::main]
async fn main() -> ExitCode {
    end(run().await)
}

async fn run() -> Result<ExitCode, Failure> {
    let (seen, place) = (Seen::default(), Place::from_env());
    let filter = if env::args().nth(1).as_deref() == Some("off") { OFF } else { FILTER };
    let provider = trace_to_stdout(filter, &seen)?;
    let (first, second) = (open(&place, "shop-1").await?, open(&place, "shop-2").await?);
    let (ours, theirs) = (lock(&first)?, lock(&second)?);

    request(1, is_deposed(&first, &ours)).await?;
    request(2, finds_it_taken(&ours, &theirs)).await?;
    let (a, b, c, d) = tokio::join!(
        request(3, works(&ours)),
        request(4, works(&theirs)),
        request(5, works(&ours)),
        request(6, works(&theirs)),
    );
    [a, b, c, d].into_iter().collect::<Result<(), _>>()?;

    let left = first.shutdown(SHUTDOWN).await.held + second.shutdown(SHUTDOWN).await.held;
    provider.shutdown()?;
    Ok(seen.judge(Outcome::new()).holds("nothing is held at the end", left == 0).print())
}

/// A service would export batches to a collector.
fn trace_to_stdout(filter: &str, seen: &Seen) -> Result<SdkTracerProvider, Failure> {
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(opentelemetry_stdout::SpanExporter::default())
        .with_simple_exporter(seen.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    let layer = layer.with_location(false).with_threads(false);
    tracing_subscriber::registry().with(EnvFilter::try_new(filter)?).with(layer).try_init()?;
    Ok(provider)
}

/// The root of a trace: what is acquired in it is a part of it.
async fn request(
    number: i64,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    work.instrument(info_span!("request", number)).await
}

async fn works(lock: &ReentrantLock) -> Result<(), Failure> {
    let guard = lock.acquire().wait(Duration::from_secs(20)).await?;
    tokio::time::sleep(WORK).await;
    let _ = guard.release().await;
    Ok(())
}

async fn finds_it_taken(ours: &ReentrantLock, theirs: &ReentrantLock) -> Result<(), Failure> {
    let guard = ours.acquire().await?;
    if theirs.try_acquire().await?.is_some() {
        return Err("a lock has two holders".into());
    }
    drop(guard);
    Ok(())
}

/// An operator ends its lease while it works.
async fn is_deposed(locks: &LockRuntime, lock: &ReentrantLock) -> Result<(), Failure> {
    let guard = lock.acquire().await?;
    locks.force_release(lock.name().as_str()).await?;
    guard.lost().await;
    Ok(())
}

fn lock(locks: &LockRuntime) -> Result<ReentrantLock, Failure> {
    Ok(locks.lock("stock/7")?.class("stock"))
}

async fn open(place: &Place, service: &str) -> Result<LockRuntime, Failure> {
    place.open(LockRuntime::builder().namespace(NAMESPACE).service(service)).await
}
