//! A process with tasks that want one lock.

mod contender;
mod sleeper;
mod tally;
mod task;
mod window;

use std::{sync::Arc, thread};

pub(crate) use contender::Contender;
use tally::Tally;
use task::Terms;
use tokio::task::JoinSet;
use window::Window;

use crate::{Failure, cpu, options::Options, output::Output, peers};

/// Runs as the command line says, and prints the results.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let runtime = options.runtime.build()?;
    let output = runtime.block_on(peers::run(&options))?;
    runtime.shutdown_background();
    println!("{}", serde_json::to_string(&output)?);
    Ok(())
}

/// Lets the tasks contend until the window is over.
pub(crate) async fn measure<C: Contender>(
    options: &Options,
    tasks: Vec<C>,
) -> Result<Output, Failure> {
    let window = Window::of(options)?;
    let processor = thread::spawn(move || window.measure(cpu::time_used));
    let terms = Arc::new(Terms::new(options, window));
    let mut running = JoinSet::new();
    for (who, contender) in tasks.into_iter().enumerate() {
        running.spawn(task::run(contender, who, Arc::clone(&terms)));
    }
    let mut tallies = Vec::new();
    while let Some(done) = running.join_next().await {
        tallies.push(done??);
    }
    let (before, after) = processor.join().map_err(|_| "the processor's time is not known")?;
    Ok(Output {
        peer: options.peer.clone(),
        runtime: options.runtime.describe(),
        cpu_us: (after.saturating_sub(before)).as_secs_f64() * 1e6,
        ..Tally::merged(&tallies)
    })
}
