//! A complete service: deposits over HTTP into accounts in PostgreSQL, a leader, a job that one copy
//! runs, health, metrics, and a stop that loses nothing.
//!
//! ```sh
//! REDIS_URL=redis://127.0.0.1/ DATABASE_URL=postgres://127.0.0.1/shop \
//!     cargo run -p leasehold-services --example accounts -- 127.0.0.1:8080
//! curl -X POST http://127.0.0.1:8080/accounts/7/deposits/100
//! ```
//!
//! Start as many copies as you like, at addresses of their own: they share the accounts.
#![expect(clippy::disallowed_methods, reason = "a service takes real time")]

mod books;
mod job;
mod leader;
mod routes;

use std::{env, io, process::ExitCode, time::Duration};

use books::Books;
use leasehold::{LockRuntime, error::WithError, metric::buckets};
use leasehold_services::{Database, Failure, Place, end};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use routes::Service;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// After a crash the others wait for as long.
const TTL: Duration = Duration::from_secs(5);
/// How often metrics that nobody has read are put together.
const UPKEEP: Duration = Duration::from_secs(10);
/// How long requests may go on after the signal to stop: less than the platform waits before it kills.
const DRAIN: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    end(run().await)
}

async fn run() -> Result<ExitCode, Failure> {
    log();
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let database = Database::from_env()?.ok_or("set REDIS_URL and DATABASE_URL")?;
    let metrics = recorder()?; // before the runtime is made, so that it counts from the beginning
    let builder = LockRuntime::builder().namespace("accounts").service("accounts").ttl(TTL);
    let locks = Place::from_env().open(builder).await?;
    let books = Books::open(&database);
    // Copies that start at the same time make the tables once.
    let made = locks.lock("migrations")?.acquire().with(async |_lease| books.make().await);
    made.await.map_err(WithError::into_cause::<Failure>)?;

    let (stop, stopping) = watch::channel(false);
    let leading = tokio::spawn(leader::lead(locks.clone(), books.clone(), stopping.clone()));
    let working = tokio::spawn(job::run(locks.clone(), books.clone(), stopping.clone()));
    let listener = TcpListener::bind(&address).await?;
    let service = Service { locks: locks.clone(), books, metrics, stopping: stopping.clone() };
    let serving = axum::serve(listener, routes::all(service));
    let serving = tokio::spawn(serving.with_graceful_shutdown(until(stopping)).into_future());
    println!("http://{address}");

    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.send(true)?;
    // Requests that have their lock go on, and no others begin: at the end nobody has to wait for a ttl.
    let left = locks.drain(DRAIN).await;
    for task in [leading, working] {
        task.await??;
    }
    serving.await??;
    println!("{} leases were not released", left.unreleased.len());
    Ok(if left.unreleased.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Resolves when the service begins to stop.
async fn until(mut stopping: watch::Receiver<bool>) {
    // An error says that `run` is over, which is a stop, too.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Shows warnings and the ends of outages, unless `RUST_LOG` asks for something else.
fn log() {
    // `fmt::init()` would show errors only.
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter.from_env_lossy())
        .with_writer(io::stderr)
        .init();
}

/// Counts the metrics of this process, with buckets that fit.
fn recorder() -> Result<PrometheusHandle, Failure> {
    let mut builder = PrometheusBuilder::new();
    for (name, bounds) in buckets() {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.into()), bounds)?;
    }
    let recorder = builder.install_recorder()?;
    let shown = recorder.clone();
    tokio::spawn(async move {
        // Otherwise histograms grow for as long as nobody reads them.
        let mut upkeep = tokio::time::interval(UPKEEP);
        loop {
            upkeep.tick().await;
            shown.run_upkeep();
        }
    });
    Ok(recorder)
}
