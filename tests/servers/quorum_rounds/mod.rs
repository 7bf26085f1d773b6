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

use campaign::{PROTECTED, UNGATED};
use fault::Fault;
use leasehold_testkit::sim::Dice;
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
        let draw = |dice: &Dice| dice.pick(&Fault::ALL);
        let campaign = campaign::run(&PROTECTED, nodes, now, &Dice::new(seed), draw);
        report.add(seed, campaign);
        (left, seed) = (left - now, seed + 1);
    }
    println!("{report}");
}

/// The control: a storage that does not compare fences takes the late write of a holder that was overtaken.
#[test]
fn control_without_a_gate_increments_are_lost() {
    let overtaken = |_: &Dice| Fault::Overtaken;
    let campaign = campaign::run(&UNGATED, 3, 4, &Dice::new(1), overtaken);
    println!("{}", campaign.finished.wrong());
}

fn number<T: FromStr<Err: std::fmt::Debug>>(key: &str) -> Option<T> {
    env::var(key).ok().map(|number| number.parse().expect("a number"))
}
