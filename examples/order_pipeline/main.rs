//! Works off a file of orders with many workers, one order of an article at a time.
//!
//! `cargo run --example order_pipeline` needs nothing but Rust: locks and stock live in this
//! process. With `REDIS_URL` set they live on that Redis, and every further copy of the program
//! joins the run that is open. A copy that crashes leaves nothing behind that the others would not
//! finish. What is done, by whom and under which fence is checked at the end, for the whole run.

mod article;
mod audit;
mod crew;
mod desk;
mod failure;
mod orders;
mod pause;
mod progress;
mod recorder;
mod report;
mod run;
mod shelf;
mod stall;
mod storage;
mod tally;

use std::{env, path::Path, process::ExitCode, sync::Arc};

use leasehold::LockRuntime;

use crate::{
    crew::Crew,
    failure::Failure,
    orders::OrderFile,
    recorder::Recorder,
    report::Report,
    run::Run,
    storage::{MemoryStorage, RedisStorage},
};

const ORDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/orders.csv");

#[tokio::main]
async fn main() -> ExitCode {
    let report = match pipeline().await {
        Ok(report) => report,
        Err(failure) => {
            // One paragraph, also where a server's words have several lines.
            let words: Vec<_> = failure.to_string().split_whitespace().map(str::to_owned).collect();
            eprintln!("order_pipeline: {}", words.join(" "));
            return ExitCode::FAILURE;
        }
    };
    println!("{report}");
    for broken in &report.broken {
        eprintln!("order_pipeline: broken: {broken}");
    }
    if report.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn pipeline() -> Result<Report, Failure> {
    let recorder = Recorder::install()?;
    let file = Arc::new(OrderFile::read(Path::new(ORDERS))?);
    match redis_url()? {
        None => {
            let locks = LockRuntime::builder().service("order_pipeline").ttl(crew::TTL);
            let crew = Crew::enter(locks.embedded()?).await?;
            let run = Run { crew, file, recorder, place: "in this process" };
            Box::pin(run.work_off(MemoryStorage::new())).await
        }
        Some(url) => {
            let locks = LockRuntime::builder().service("order_pipeline").ttl(crew::TTL);
            let locks = locks.connect(&url).await.map_err(|error| format!("REDIS_URL: {error}"))?;
            let crew = Crew::enter(locks).await?;
            let storage = RedisStorage::join(&crew, &url, &file).await?;
            let run = Run { crew, file, recorder, place: "on Redis" };
            Box::pin(run.work_off(storage)).await
        }
    }
}

/// The server to share the work with others on; empty is as good as not set.
fn redis_url() -> Result<Option<String>, Failure> {
    match env::var("REDIS_URL") {
        Ok(url) => Ok(Some(url).filter(|url| !url.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err("REDIS_URL is not text; write an address".into()),
    }
}
