//! `leasehold bench`.

mod measure;
mod progress;
mod report;

use leasehold::time::{Clock, SystemClock};

use crate::{
    args::{BenchArgs, ServerArgs},
    durations::SHORTEST_BENCH,
    ending::Failure,
    json,
    output::write_out,
    server,
};

use measure::BenchPart;
use progress::ProgressBar;

pub(crate) fn bench(args: &ServerArgs, what: &BenchArgs) -> Result<u8, Failure> {
    if what.time < SHORTEST_BENCH {
        return Err(Failure::usage(
            "--time is too short to measure anything: give it at least 500ms",
        ));
    }
    let slice = what.time / u32::try_from(BenchPart::ALL.len()).unwrap_or(1);
    server::tokio()?.block_on(async {
        let runtimes = measure::Runtimes::connect(args).await?;
        let mut progress = ProgressBar::new(what.time);
        let mut found = Vec::new();
        for part in BenchPart::ALL {
            let until = SystemClock.now() + slice;
            let measured = tokio::select! {
                biased;
                measured = part.measure(&runtimes, until) => measured?,
                never = progress.show(part.title()) => match never {},
            };
            found.push((part, measured));
        }
        progress.end();
        if what.json {
            json::write(&report::document(&found))?;
        } else {
            write_out(report::text(&found).as_bytes())?;
        }
        Ok(0)
    })
}
