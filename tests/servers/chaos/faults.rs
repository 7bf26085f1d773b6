use std::{collections::BTreeMap, thread, time::Duration};

use leasehold_core::Entropy;
use leasehold_testkit::{
    SeededEntropy,
    proxy::{Direction, Storm},
};

use super::{fleet::Fleet, plan::Plan};

/// What strikes beside the storm of the proxy, with its weight.
const KINDS: [(Kind, usize); 11] = [
    (Kind::Calm, 3),
    (Kind::Storm, 6),
    (Kind::ResetAll, 2),
    (Kind::BlackHole, 2),
    (Kind::Refuse, 2),
    (Kind::ServerPaused, 2),
    (Kind::DataLost, 1),
    (Kind::ScriptsFlushed, 1),
    (Kind::SubscriptionsKilled, 3),
    (Kind::ProcessStopped, 3),
    (Kind::ProcessKilled, 1),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Calm,
    Storm,
    ResetAll,
    BlackHole,
    Refuse,
    ServerPaused,
    DataLost,
    ScriptsFlushed,
    SubscriptionsKilled,
    ProcessStopped,
    ProcessKilled,
}

/// Draws faults, one after the other.
#[derive(Debug)]
pub(crate) struct Faults {
    dice: SeededEntropy,
    plan: Plan,
    struck: BTreeMap<&'static str, u64>,
}

impl Faults {
    pub(crate) fn of(plan: &Plan) -> Self {
        let dice = SeededEntropy::new(plan.seed);
        Self { dice, plan: plan.clone(), struck: BTreeMap::new() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.struck.values().sum()
    }

    /// How often each struck.
    pub(crate) fn told(self) -> BTreeMap<&'static str, u64> {
        self.struck
    }

    /// Lets one strike, and ends it.
    pub(crate) fn strike(&mut self, fleet: &mut Fleet<'_>) {
        let kind = self.draw();
        let length = self.plan.ttl.mul_f64(0.2 + 1.3 * self.dice.fraction());
        let index = self.below(fleet.size());
        let site = &fleet.site;
        // One server is not drawn for.
        let number = if site.servers().len() > 1 { self.below(site.servers().len()) } else { 0 };
        let server = &site.servers()[number];
        match kind {
            Kind::Calm => thread::sleep(length),
            Kind::Storm => {
                let seed = self.dice.bits();
                site.storm(rough(seed, self.plan.ttl));
                thread::sleep(length);
                site.calm();
            }
            Kind::ResetAll => site.reset(),
            Kind::BlackHole => {
                let ways = [Direction::ToServer, Direction::ToClient, Direction::Both];
                site.black_hole(ways[self.below(3)]);
                thread::sleep(length);
                site.heal();
            }
            Kind::Refuse => {
                site.refuse();
                site.reset();
                thread::sleep(length / 2);
                site.accept();
            }
            Kind::ServerPaused => {
                server.stop_signal();
                thread::sleep(length);
                server.cont_signal();
            }
            Kind::DataLost if self.below(2) == 0 => site.lose(number),
            Kind::DataLost => site.restart(number),
            Kind::ScriptsFlushed => drop(server.command(&["SCRIPT", "FLUSH"])),
            // They may be at any of them.
            Kind::SubscriptionsKilled => site.servers().iter().for_each(|server| {
                server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
            }),
            Kind::ProcessStopped => {
                fleet.process(index).stop();
                thread::sleep(length);
                fleet.process(index).cont();
            }
            Kind::ProcessKilled => fleet.replace(index),
        }
        thread::sleep(self.plan.ttl / 10);
        if kind != Kind::Calm {
            *self.struck.entry(kind.name()).or_default() += 1;
        }
    }

    fn draw(&self) -> Kind {
        let mut left = self.below(KINDS.iter().map(|(_, weight)| weight).sum());
        let struck = KINDS.iter().find(|(_, weight)| {
            let is_it = left < *weight;
            left = left.saturating_sub(*weight);
            is_it
        });
        struck.map_or(Kind::Calm, |(kind, _)| *kind)
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.dice.bits() >> 32).unwrap_or_default() % bound
    }
}

/// Some of everything; the chances are in millionths.
fn rough(seed: u64, ttl: Duration) -> Storm {
    Storm {
        seed,
        drop_request: 2_000,
        drop_reply: 2_000,
        drop_push: 20_000,
        delay: 20_000,
        max_delay: ttl / 2,
        duplicate: 10_000,
        copy_later: 5_000,
        reset: 1_000,
        cut: 1_000,
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Storm => "messages lost, late, twice",
            Self::ResetAll => "connections reset",
            Self::BlackHole => "black hole",
            Self::Refuse => "connections refused",
            Self::ServerPaused => "server stopped",
            Self::DataLost => "all data lost",
            Self::ScriptsFlushed => "scripts flushed",
            Self::SubscriptionsKilled => "subscriptions killed",
            Self::ProcessStopped => "process stopped",
            Self::ProcessKilled => "process killed",
        }
    }
}
