#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    env, fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use leasehold_testkit::ChildProcess;

use super::{
    load::Load,
    output::{MEASURED, Output, READY},
};
use crate::{Failure, bed::Bed, options::Options, round::Round, subjects::Subject, waits::Waits};

/// How long processes may take until they are ready, and to end after the window.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the processes of a round.
pub(crate) fn measure(bed: &mut Bed, load: Load, subject: Subject) -> Result<Round, Failure> {
    bed.calls.flush()?;
    bed.places += 1;
    let place = |what: &str| bed.server.socket().with_file_name(format!("{what}-{}", bed.places));
    let options = Options {
        subject,
        keep_idle: load.keep_idle,
        redis: bed.server.url(),
        name: "turns".into(),
        tasks: load.tasks,
        hold: load.hold,
        meeting: load.alternate.then(|| place("meeting")),
        first: false,
        start_file: place("start"),
        start: Duration::ZERO,
        measured: bed.measured,
    };
    let spawn = |index| spawn(&Options { first: index == 0, ..options.clone() });
    let mut processes = (0..load.processes).map(spawn).collect::<Result<Vec<_>, _>>()?;
    for process in &mut processes {
        process.wait_for_line(READY, PATIENCE);
    }
    let start = Instant::now() + bed.warmup;
    tell_start(&options.start_file, SystemTime::now().duration_since(UNIX_EPOCH)? + bed.warmup)?;
    sleep_until(start);
    let before = bed.calls.count("")?;
    sleep_until(start + bed.measured);
    let commands = bed.calls.count("")?.rate_since(&before);
    let outputs = processes.into_iter().map(output).collect::<Result<Vec<_>, _>>()?;
    round(outputs, commands, bed.measured)
}

/// Writes when the window starts, in one step.
fn tell_start(file: &Path, start: Duration) -> Result<(), Failure> {
    let draft = file.with_extension("draft");
    fs::write(&draft, serde_json::to_string(&start)?)?;
    Ok(fs::rename(draft, file)?)
}

/// This program once more.
fn spawn(options: &Options) -> Result<ChildProcess, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["worker", &serde_json::to_string(options)?]);
    Ok(ChildProcess::spawn(command))
}

fn output(mut process: ChildProcess) -> Result<Output, Failure> {
    Ok(serde_json::from_str(&process.wait_for_line(MEASURED, PATIENCE))?)
}

/// Puts together what the processes printed.
fn round(outputs: Vec<Output>, commands: f64, measured: Duration) -> Result<Round, Failure> {
    let stuck: usize = outputs.iter().map(|output| output.stuck).sum();
    if stuck > 0 {
        return Err(format!("{stuck} tasks waited for ever").into());
    }
    // Fences tell in which order the processes had the lock.
    let (mut order, mut cpu_us) = (Vec::new(), 0.0);
    for (process, output) in outputs.into_iter().enumerate() {
        let leases = output.fences.into_iter().zip(output.waits_ns);
        order.extend(leases.map(|(fence, wait)| Lease { fence, process, wait }));
        cpu_us += output.cpu_us;
    }
    order.sort_unstable();
    if let Some(pair) = order.windows(2).find(|pair| pair[0].fence == pair[1].fence) {
        return Err(format!("two leases had the fence {}", pair[0].fence).into());
    }
    let handed = order.windows(2).filter(|pair| pair[0].process != pair[1].process);
    let handed: Waits = handed.map(|pair| pair[1].wait).collect();
    let (seconds, all) = (measured.as_secs_f64(), count(order.len()));
    let (handed_per_second, [_, handed_p99]) =
        (count(handed.len()) / seconds, handed.percentiles());
    let [p50, p99] = order.iter().map(|lease| lease.wait).collect::<Waits>().percentiles();
    Ok(Round {
        acquired: all / seconds,
        handed: handed_per_second,
        commands: commands * seconds / all,
        client_micros: cpu_us / all,
        p50,
        p99,
        handed_p99,
    })
}

/// A lease of one of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lease {
    fence: u64,
    process: usize,
    /// How long its task waited for it, in nanoseconds.
    wait: u64,
}

fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}

#[expect(clippy::cast_precision_loss, reason = "a count of a few seconds is small")]
fn count(number: usize) -> f64 {
    number as f64
}
