use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use super::{
    mutants::Mutation,
    run::run,
    verdict::{Tally, Verdict},
};

/// The results of the seeds that a test ran.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) tally: Tally,
    /// The first seeds that failed, in order.
    pub(crate) failed: Vec<(u64, Vec<String>)>,
}

/// A run that takes longer than this hangs.
const LONGEST_RUN: Duration = Duration::from_secs(60);
/// After so many failures nothing new is to be learnt.
const MOST_FAILURES: usize = 5;

/// Runs every `step`-th seed of a range on all cores; ends early when some have failed.
pub(crate) fn seeds(
    range: Range<u64>,
    step: u64,
    mutation: Mutation,
    most_failures: usize,
) -> Batch {
    let next = Arc::new(AtomicU64::new(range.start));
    let enough = Arc::new(AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    let running: Arc<Mutex<Vec<u64>>> = Arc::default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..cores {
        let (next, enough, end) = (Arc::clone(&next), Arc::clone(&enough), range.end);
        let (sender, running) = (sender.clone(), Arc::clone(&running));
        std::thread::spawn(move || {
            while !enough.load(Ordering::Relaxed) {
                let seed = next.fetch_add(step, Ordering::Relaxed);
                if seed >= end {
                    return;
                }
                lock(&running).push(seed);
                let (verdict, _) = run(seed, mutation, false);
                lock(&running).retain(|other| *other != seed);
                if sender.send((seed, verdict)).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut batch = Batch { tally: Tally::default(), failed: Vec::new() };
    loop {
        match results.recv_timeout(LONGEST_RUN) {
            Ok((seed, Verdict { violations, tally })) => {
                batch.tally.add(&tally);
                if !violations.is_empty() {
                    batch.failed.push((seed, violations));
                    enough.store(batch.failed.len() >= most_failures, Ordering::Relaxed);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("one of the seeds {:?} hangs: a process spins", lock(&running));
            }
        }
    }
    batch.failed.sort();
    batch
}

/// Runs the seeds of the gate, or those of the environment; replays a single one with its log.
pub(crate) fn gate(default: Range<u64>) {
    if let Some(seed) = variable("LEASEHOLD_SEED").map(|seed| seed.parse().expect("a number")) {
        return replay(seed);
    }
    let range = variable("LEASEHOLD_SEEDS").map_or(default, |text| {
        let (from, to) = text.split_once("..").expect("seeds as from..to");
        from.parse().expect("a number")..to.parse().expect("a number")
    });
    let most = variable("LEASEHOLD_FAILURES")
        .map_or(MOST_FAILURES, |most| most.parse().expect("a number"));
    let batch = seeds(range, 1, Mutation::none(), most);
    println!("{}", batch.tally);
    for (seed, violations) in &batch.failed {
        println!("seed {seed}, {:?}:", super::plan::Plan::of(*seed).kind);
        for violation in violations.iter().take(8) {
            println!("  {violation}");
        }
        println!("  replay: {}", command(*seed));
    }
    assert!(batch.failed.is_empty(), "{} seeds failed; see above", batch.failed.len());
}

fn replay(seed: u64) {
    let mutation = Mutation::named(variable("LEASEHOLD_MUTANT").as_deref());
    let (verdict, trace) = run(seed, mutation, true);
    println!("{:#?}", super::plan::Plan::of(seed));
    for (at, step) in trace.steps() {
        println!("{at:?} {step:?}");
    }
    println!("{}", verdict.tally);
    assert!(verdict.violations.is_empty(), "seed {seed}: {:#?}", verdict.violations);
}

/// The command that replays a seed.
pub(crate) fn command(seed: u64) -> String {
    format!("LEASEHOLD_SEED={seed} cargo test --test simulation seeds -- --nocapture")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
