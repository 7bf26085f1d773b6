//! `leasehold bench`.

mod measure;
mod progress;

use leasehold::time::{Clock, SystemClock};
use serde_json::{Map, Value, json};

use crate::{
    args::{BenchArgs, ServerArgs},
    durations::SHORTEST_BENCH,
    ending::CliError,
    json,
    output::write_out,
    words::table,
};

use measure::{PARTS, Runtimes};
use progress::ProgressBar;

pub(crate) async fn bench(args: &ServerArgs, what: &BenchArgs) -> Result<u8, CliError> {
    if what.time < SHORTEST_BENCH {
        return Err(CliError::usage(
            "--time is too short to measure anything: give it at least 500ms",
        ));
    }
    let slice = what.time / u32::try_from(PARTS.len()).unwrap_or(1);
    let runtimes = Runtimes::connect(args).await?;
    let mut progress = ProgressBar::new(what.time);
    let mut rates = Vec::new();
    for (part, name, words) in PARTS {
        let until = SystemClock.now() + slice;
        let rate = tokio::select! {
            biased;
            rate = part.measure(&runtimes, until) => rate?,
            never = progress.show(words) => match never {},
        };
        rates.push((name, words, rate));
    }
    progress.end();
    if what.json {
        json::write(&document(&rates))?;
    } else {
        write_out(text(&rates).as_bytes())?;
    }
    Ok(0)
}

/// The name of a part in JSON and in words, and how often a second it was done.
type BenchRate = (&'static str, &'static str, f64);

/// How many bare round trips one of them takes as long as.
fn round_trips(rates: &[BenchRate], rate: f64) -> f64 {
    rates.first().map_or(0.0, |(.., bare)| bare / rate)
}

fn text(rates: &[BenchRate]) -> String {
    let rows = rates.iter().map(|(_, words, rate)| {
        [
            (*words).to_owned(),
            format!("{rate:>10.0}"),
            format!("{:>9.1} us", 1_000_000.0 / rate),
            format!("{:>6.2}", round_trips(rates, *rate)),
        ]
    });
    table(["WHAT", "PER SECOND", "EACH", "IN BARE ROUND TRIPS"], rows)
}

fn document(rates: &[BenchRate]) -> Value {
    let figures = rates.iter().map(|(name, _, rate)| {
        let figures = json!({ "per_second": rate, "round_trips": round_trips(rates, *rate) });
        ((*name).to_owned(), figures)
    });
    figures.collect::<Map<_, _>>().into()
}
