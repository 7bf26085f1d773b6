#![expect(clippy::disallowed_methods, reason = "faults last for real time")]

use std::{fmt, thread, time::Duration};

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::{QuorumGroup, QuorumNetwork, sim::Dice};

use super::campaign::GOES_ON;
use crate::support::crew::Crew;

/// What goes wrong in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A server stands still.
    Hangs,
    /// A server restarts without its data.
    Forgets,
    /// A server restarts with what it saved some rounds ago.
    Remembers,
    /// A process is cut off from a server.
    CutOff,
    /// A process is cut off from all servers but one.
    Alone,
    /// All connections of a process are reset.
    Reset,
    /// A process stands still, past its lease or not.
    Paused,
    /// A holder stands in the midst of its section until others have written.
    Overtaken,
    /// A server stands still while a process is cut off from another one.
    NoMajority,
}

impl Fault {
    pub(super) const ALL: [Self; 9] = [
        Self::Hangs,
        Self::Forgets,
        Self::Remembers,
        Self::CutOff,
        Self::Alone,
        Self::Reset,
        Self::Paused,
        Self::Overtaken,
        Self::NoMajority,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Hangs => "a server hangs",
            Self::Forgets => "a server restarts empty",
            Self::Remembers => "a server restarts with an old snapshot",
            Self::CutOff => "a process is cut off from a server",
            Self::Alone => "a process reaches one server",
            Self::Reset => "a process' connections are reset",
            Self::Paused => "a process is stopped",
            Self::Overtaken => "a holder is overtaken",
            Self::NoMajority => "a server hangs, another is cut off",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What faults strike.
pub(super) struct Scene<'a> {
    pub(super) group: &'a QuorumGroup,
    /// One for each process.
    pub(super) networks: &'a [QuorumNetwork],
    pub(super) crew: &'a mut Crew,
}

impl Scene<'_> {
    /// Has a fault strike, for a while, and heals it. Tells how long it took until work went on under it,
    /// where it has to.
    pub(super) fn strike(&mut self, fault: Fault, dice: &Dice) -> Option<Duration> {
        let node = pick(dice, self.group.nodes());
        let other = (node + 1 + pick(dice, self.group.nodes() - 1)) % self.group.nodes();
        let process = pick(dice, self.networks.len());
        let network = &self.networks[process];
        let time = Duration::from_millis(100 + dice.below(800));
        match fault {
            Fault::Hangs => {
                self.group.pause(node);
                let struck_at = SystemClock.now();
                // The others are a majority, at the latest when one that restarted empty is let in again.
                self.crew.work(GOES_ON);
                let pause = SystemClock.now().saturating_since(struck_at);
                thread::sleep(time);
                self.group.resume(node);
                return Some(pause);
            }
            Fault::Forgets => {
                self.group.kill(node);
                thread::sleep(time / 4);
                self.group.revive_empty(node);
            }
            Fault::Remembers => {
                self.group.kill(node);
                thread::sleep(time / 4);
                self.group.revive(node);
                self.group.save(other);
            }
            Fault::CutOff => {
                network.cut(&[node]);
                thread::sleep(time);
                network.heal();
            }
            Fault::Alone => {
                let others: Vec<_> = (0..self.group.nodes()).filter(|at| *at != node).collect();
                network.cut(&others);
                thread::sleep(time);
                network.heal();
            }
            Fault::Reset => {
                for proxy in network.proxies() {
                    proxy.reset_all();
                }
            }
            Fault::Paused => {
                self.crew.child(process).stop();
                thread::sleep(2 * time);
                self.crew.child(process).cont();
            }
            Fault::Overtaken => {
                let read = self.crew.halt(process);
                self.crew.child(process).stop();
                self.crew.until_above(read);
                self.crew.child(process).cont();
                self.crew.resume(process);
            }
            Fault::NoMajority => {
                self.group.pause(node);
                network.cut(&[other]);
                thread::sleep(time);
                network.heal();
                self.group.resume(node);
            }
        }
        None
    }
}

/// A number below a limit.
fn pick(dice: &Dice, limit: usize) -> usize {
    let limit = u64::try_from(limit).expect("a small number");
    usize::try_from(dice.below(limit)).expect("a small number")
}
