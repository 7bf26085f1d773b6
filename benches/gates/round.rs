#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use crate::Failure;

/// How many tasks write, each to a resource of its own.
pub(crate) const TASKS: usize = 8;

/// Some writes of one task, one after another; how many they are.
pub(crate) type Writes = Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send>>;

/// Writes of a task to its resource.
pub(crate) type Write = Arc<dyn Fn(usize) -> Writes + Send + Sync>;

/// Lets all tasks write for a while; the writes per second.
pub(crate) async fn run(write: &Write, length: Duration) -> Result<f64, Failure> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let write = Arc::clone(write);
        tasks.spawn(async move {
            let mut done = 0;
            while started.elapsed() < length {
                done += write(task).await?;
            }
            Ok::<_, Failure>(done)
        });
    }
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of writes is small")]
    let done = done as f64;
    Ok(done / started.elapsed().as_secs_f64())
}
