#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    io::{Write, stdout},
    thread,
    time::{Duration, Instant},
};

use leasehold_testkit::resident;

use super::{options::Options, server::Server, tally::Tally};
use crate::{
    Failure, cpu,
    output::{HELD, Output},
};

/// What is left to do of acquisitions is over by then, and does not count as renewal.
const SETTLE: Duration = Duration::from_secs(1);

/// The time of acquisition: how long it takes, and what memory grows by.
#[derive(Debug)]
pub(super) struct Acquisition {
    started: Instant,
    cpu: Duration,
    resident: u64,
}

impl Acquisition {
    /// It begins.
    pub(super) fn begin() -> Self {
        let resident = resident();
        Self { started: Instant::now(), cpu: cpu::time_used(), resident }
    }

    /// It is over: watches what renews the leases, and what that costs.
    #[expect(clippy::cast_precision_loss, reason = "memory is less than petabytes")]
    pub(super) fn end(
        self,
        options: &Options,
        tally: &Tally,
        lost: impl FnOnce() -> u64,
    ) -> Result<Output, Failure> {
        let acquired_in_s = self.started.elapsed().as_secs_f64();
        let when_held = resident();
        println!("{HELD}{acquired_in_s}");
        stdout().flush()?;
        let mut server = Server::at(&options.server)?;
        thread::sleep(SETTLE);
        let acquired_cpu = cpu::time_used().saturating_sub(self.cpu);
        tally.forget_lags();
        let before = (server.scripts_called()?, cpu::time_used(), tally.failed());
        let renewed = each_second(options.measured, tally);
        let cpu = cpu::time_used().saturating_sub(before.1);
        let commands = server.scripts_called()? - before.0;
        let (lost, at_end) = (lost(), resident());
        Ok(Output {
            acquired_in_s,
            acquired_cpu_s: acquired_cpu.as_secs_f64(),
            bytes_per_lease: (when_held.max(at_end).saturating_sub(self.resident)) as f64
                / options.leases as f64,
            lost,
            renewed,
            failed: tally.failed() - before.2,
            commands,
            cpu_s: cpu.as_secs_f64(),
            lag_p50_ms: tally.lag_ms(1, 2),
            lag_p99_ms: tally.lag_ms(99, 100),
            lag_max_ms: tally.lag_ms(1, 1),
        })
    }
}

/// How many leases are renewed in each second.
fn each_second(measured: Duration, tally: &Tally) -> Vec<u64> {
    let (start, mut before) = (Instant::now(), tally.renewed());
    let second = |second| {
        let end = start + Duration::from_secs(second);
        thread::sleep(end.saturating_duration_since(Instant::now()));
        let renewed = tally.renewed() - before;
        before += renewed;
        renewed
    };
    (1..=measured.as_secs()).map(second).collect()
}
