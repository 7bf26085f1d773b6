use std::time::Duration;

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::sim::Dice;

use super::fault::{Fault, Scene};
use crate::{
    faults::quorum::scene,
    support::crew::{Crew, Finished, Plan},
};

/// Leases that end soon, as a server that lost its data stays out for as long.
pub(super) const PROTECTED: Plan =
    Plan { ttl: Duration::from_millis(600), processes: 0, ..Plan::PROTECTED };

/// The same without a gate.
pub(super) const UNGATED: Plan = Plan { gated: false, ..PROTECTED };

/// How many processes work.
const PROCESSES: usize = 3;

/// So many increments show that work goes on.
pub(super) const GOES_ON: u64 = 5;

/// What was seen in some rounds.
pub(super) struct Campaign {
    pub(super) finished: Finished,
    /// The faults, and how long it took until work went on: from the end of each, or from its beginning
    /// if work goes on under it.
    pub(super) rounds: Vec<(Fault, Duration)>,
}

/// Rounds of faults, under processes at work.
pub(super) fn run(
    plan: &Plan,
    nodes: usize,
    rounds: usize,
    dice: &Dice,
    mut fault: impl FnMut(&Dice) -> Fault,
) -> Campaign {
    let group = scene::group(nodes);
    (0..nodes).for_each(|number| group.save(number));
    let networks: Vec<_> = (0..PROCESSES).map(|_| group.network()).collect();
    let mut crew = Crew::start(plan, &group.url());
    for network in &networks {
        crew.join(&network.url(), 1);
    }
    crew.work(GOES_ON);
    let mut strikes = Vec::new();
    for _ in 0..rounds {
        let fault = fault(dice);
        let mut at_work = Scene { group: &group, networks: &networks, crew: &mut crew };
        let meanwhile = at_work.strike(fault, dice);
        let healed_at = SystemClock.now();
        crew.work(GOES_ON);
        let afterwards = SystemClock.now().saturating_since(healed_at);
        strikes.push((fault, meanwhile.unwrap_or(afterwards)));
    }
    let finished = crew.finish();
    scene::leaves_nothing(&group);
    Campaign { finished, rounds: strikes }
}
