#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{fs, path::Path, thread, time::Duration};

use tokio::{task::JoinSet, time::sleep};

use super::{
    baton::Baton,
    output::{MEASURED, Output, READY},
    task::Task,
};
use crate::{
    Failure, cpu,
    kind::Kind,
    options::Options,
    sleeper::Sleeper,
    subjects::{Floor, Leasehold, Lock, Subject},
    window::Window,
};

/// Runs as the command line says, and prints what its tasks did.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let [options] = arguments else { return Err("worker OPTIONS".into()) };
    let options: Options = serde_json::from_str(options)?;
    let runtime = Kind::Current.build()?;
    let output = runtime.block_on(run(&options))?;
    runtime.shutdown_background();
    println!("{MEASURED}{}", serde_json::to_string(&output)?);
    Ok(())
}

async fn run(options: &Options) -> Result<Output, Failure> {
    let keep_idle = (options.subject == Subject::On).then_some(options.keep_idle);
    match options.subject {
        Subject::Floor => measure(options, Floor::connect(&options.redis).await?).await,
        _ => measure(options, Leasehold::connect(&options.redis, keep_idle).await?).await,
    }
}

/// Lets the tasks use the lock until the window is over.
async fn measure<L: Lock>(options: &Options, lock: L) -> Result<Output, Failure> {
    let Options { tasks, hold, .. } = *options;
    let mut baton = match &options.meeting {
        Some(meeting) => Some(Baton::meet(meeting, options.first).await?),
        None => None,
    };
    println!("{READY}");
    let start = start(&options.start_file).await?;
    let (window, sleeper) = (Window::of(&Options { start, ..options.clone() })?, Sleeper::start());
    let processor = thread::spawn(move || window.measure(cpu::time_used));
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (lock, name) = (lock.clone(), lock.name(&options.name)?);
        let (sleeper, baton) = (sleeper.clone(), baton.take());
        running.spawn(Task { lock, name, hold, window, sleeper, baton }.run());
    }
    let mut all = Output::default();
    for done in running.join_all().await {
        let done = done?;
        all.fences.extend(done.fences);
        all.waits_ns.extend(done.waits_ns);
        all.stuck += done.stuck;
    }
    lock.leave().await;
    let (before, after) = processor.join().map_err(|_| "the processor's time is not known")?;
    Ok(Output { cpu_us: after.saturating_sub(before).as_secs_f64() * 1e6, ..all })
}

/// Waits until it is told when the window starts; the process that tells it kills this one if it
/// ends before.
async fn start(file: &Path) -> Result<Duration, Failure> {
    while !file.exists() {
        sleep(Duration::from_millis(2)).await;
    }
    Ok(serde_json::from_str(&fs::read_to_string(file)?)?)
}
