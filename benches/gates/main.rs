//! Writes through each gate beside the same write without it:
//! `cargo bench -p leasehold-benches --features gates --bench gates`.
//!
//! Every row is one kind of write: rounds without the gate and rounds through it take turns, on
//! private servers. `--seconds N` is the length of a round, `--rounds N` how many there are of
//! each, `--only TEXT` leaves out the rows whose names do not contain the text.

#[path = "../figures.rs"]
#[expect(dead_code, reason = "the table has columns of its own")]
mod figures;
mod options;
mod report;
mod round;
mod stamps;
mod subjects;

use std::error::Error;

use options::Options;
use report::Report;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<(), Failure> {
    let bench = subjects::start().await?;
    let mut report = Report::default();
    for subject in &bench.subjects {
        if !options.wants(subject.name) {
            continue;
        }
        round::run(&subject.plain, options.warm_up).await?;
        round::run(&subject.gated, options.warm_up).await?;
        for done in 0..options.rounds {
            let plain = round::run(&subject.plain, options.round).await?;
            let gated = round::run(&subject.gated, options.round).await?;
            report.add(subject.name, plain, gated);
            eprintln!("{}: round {} of {}", subject.name, done + 1, options.rounds);
        }
    }
    report.print();
    Ok(())
}
