#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use crate::output::Output;

/// How many waits a process tells at most.
const MOST_WAITS: usize = 20_000;

/// How many waits a task remembers at most, evenly spaced in time.
const REMEMBERED: usize = 1 << 16;

/// Up to how many acquisitions of a task are told with their instants.
const MOST_INSTANTS: usize = 200_000;

/// What one task did within the window.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Whether it waited in vain when all others had stopped.
    pub(crate) stuck: bool,
    acquired: u64,
    switches: u64,
    held: Duration,
    /// Every `stride`th of the waits, in nanoseconds.
    waits: Vec<u64>,
    stride: u64,
    /// The first of all instants.
    instants: Vec<Instant>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            stuck: false,
            acquired: 0,
            switches: 0,
            held: Duration::ZERO,
            waits: Vec::with_capacity(REMEMBERED),
            stride: 1,
            instants: Vec::new(),
        }
    }
}

impl Tally {
    /// Counts an acquisition.
    pub(crate) fn count(&mut self, got: Instant, waited: Duration, kept: Duration, switched: bool) {
        if self.acquired.is_multiple_of(self.stride) {
            self.remember(waited);
        }
        if self.instants.len() < MOST_INSTANTS {
            self.instants.push(got);
        }
        self.acquired += 1;
        self.switches += u64::from(switched);
        self.held += kept;
    }

    fn remember(&mut self, waited: Duration) {
        if self.waits.len() == REMEMBERED {
            let mut nth = 0;
            self.waits.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.stride *= 2;
            if !self.acquired.is_multiple_of(self.stride) {
                return;
            }
        }
        self.waits.push(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What all tasks of a process did; the fields that no tally knows are empty.
    pub(crate) fn merged(tallies: &[Self]) -> Output {
        let acquired: Vec<u64> = tallies.iter().map(|tally| tally.acquired).collect();
        let held: Duration = tallies.iter().map(|tally| tally.held).sum();
        let all = acquired.iter().sum::<u64>().max(1);
        Output {
            peer: String::new(),
            runtime: String::new(),
            switches: tallies.iter().map(|tally| tally.switches).sum(),
            hold_us_mean: held.as_secs_f64() * 1e6 / float(all),
            cpu_us: 0.0,
            stuck: tallies.iter().filter(|tally| tally.stuck).count(),
            waits_us: waits(tallies),
            acquired_at_ns: instants(tallies),
            acquired,
        }
    }
}

/// Evenly spaced out of the waits of all tasks, each of which counts as often as it waited.
fn waits(tallies: &[Tally]) -> Vec<f64> {
    let stride = tallies.iter().map(|tally| tally.stride).max().unwrap_or(1);
    let mut all: Vec<u64> = Vec::new();
    for tally in tallies {
        let step = usize::try_from(stride / tally.stride).unwrap_or(usize::MAX);
        all.extend(tally.waits.iter().step_by(step));
    }
    all.sort_unstable();
    let kept = all.len().min(MOST_WAITS);
    // The middle of each of as many parts.
    (0..kept).map(|part| float(all[(2 * part + 1) * all.len() / (2 * kept)] / 10) / 100.0).collect()
}

/// For each task, the first instant in the clock that all processes share, then distances.
fn instants(tallies: &[Tally]) -> Option<Vec<Vec<u64>>> {
    if tallies.iter().any(|tally| tally.instants.len() == MOST_INSTANTS) {
        return None;
    }
    let (now, clock) =
        (Instant::now(), rustix::time::clock_gettime(rustix::time::ClockId::Monotonic));
    let seconds = u64::try_from(clock.tv_sec).unwrap_or(0);
    let clock = Duration::new(seconds, u32::try_from(clock.tv_nsec).unwrap_or(0));
    let of_task = |tally: &Tally| {
        let mut before = Duration::ZERO;
        let mut distances = Vec::with_capacity(tally.instants.len());
        for instant in &tally.instants {
            let at = clock.saturating_sub(now - *instant);
            distances.push(u64::try_from(at.saturating_sub(before).as_nanos()).unwrap_or(u64::MAX));
            before = at;
        }
        distances
    };
    Some(tallies.iter().map(of_task).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a count of a few seconds is small")]
fn float(number: u64) -> f64 {
    number as f64
}
