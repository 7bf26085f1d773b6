//! What a worker process is told on its command line: the same as those of another benchmark.

#[path = "../contention/options.rs"]
mod of_contention;

pub(crate) use of_contention::Options;
