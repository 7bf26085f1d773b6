//! Writes through each gate beside the same write without it:
//! `cargo bench -p leasehold-benches --features gates --bench gates`.
//!
//! Every row is one kind of write: rounds without the gate and rounds through it take turns, on
//! private servers. `--seconds N` is the length of a round, `--rounds N` how many there are of
//! each, `--only TEXT` leaves out the rows whose names do not contain the text.

mod options;
mod round;
mod stamps;
mod subjects;
#[path = "../table.rs"]
#[expect(dead_code, reason = "there are no goals")]
mod table;

use std::error::Error;

use options::Options;
use table::{Column, Key, Table};

type Failure = Box<dyn Error + Send + Sync>;

const COLUMNS: &[Column] = &[("writes/s", "writes_per_second", 0)];

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). ratio: writes through the gate divided by those of this row,
median of the ratios of two rounds that followed each other.";

fn main() -> Result<(), Failure> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<(), Failure> {
    let bench = subjects::start().await?;
    let title = "writes through each gate, and without it";
    let mut table = Table::new("gates", title, COLUMNS, Some("ratio"), LEGEND);
    for subject in &bench.subjects {
        if !options.wants(subject.name) {
            continue;
        }
        round::run(&subject.plain, options.warm_up).await?;
        round::run(&subject.gated, options.warm_up).await?;
        for done in 0..options.rounds {
            let plain = round::run(&subject.plain, options.round).await?;
            let gated = round::run(&subject.gated, options.round).await?;
            table.add(Key::new(&"", &subject.name, "through the gate"), vec![gated]);
            table.add(Key::new(&"", &subject.name, "without"), vec![plain]);
            eprintln!("{}: round {} of {}", subject.name, done + 1, options.rounds);
        }
    }
    table.print();
    table.print_json();
    Ok(())
}
