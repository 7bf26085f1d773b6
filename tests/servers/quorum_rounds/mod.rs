//! Random rounds on a quorum: servers hang, restart empty or with an old snapshot, are cut off from
//! some processes; processes stop past their leases. No fence repeats or goes back, the gate accepts no
//! stale write, and no increment is lost.
//!
//! `LEASEHOLD_QUORUM_ROUNDS` says how many there are, `LEASEHOLD_QUORUM_SEED` where they begin;
//! `scripts/prove.sh quorum` makes many.

mod campaign;
mod fault;
mod report;

use std::{env, str::FromStr};

use report::Report;

/// How many rounds there are.
const ROUNDS: &str = "LEASEHOLD_QUORUM_ROUNDS";
/// The first seed.
const SEED: &str = "LEASEHOLD_QUORUM_SEED";

/// Rounds with the same processes and servers; then others begin.
const TOGETHER: usize = 20;

#[test]
fn no_stale_write_is_accepted_in_random_rounds() {
    let (rounds, seed) = (number(ROUNDS).unwrap_or(8), number(SEED).unwrap_or(1));
    let mut report = Report::default();
    let (mut left, mut seed): (usize, u64) = (rounds, seed);
    while left > 0 {
        let now = left.min(TOGETHER);
        // Every third time on five servers.
        let nodes = if seed % 3 == 0 { 5 } else { 3 };
        println!("seed {seed}: {now} rounds on {nodes} servers; {report}");
        report.add(seed, campaign::run(seed, nodes, now));
        (left, seed) = (left - now, seed + 1);
    }
    println!("{report}");
}

fn number<T: FromStr<Err: std::fmt::Debug>>(key: &str) -> Option<T> {
    env::var(key).ok().map(|number| number.parse().expect("a number"))
}
