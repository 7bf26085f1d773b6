use leasehold_core::{StoreError, StoreErrorKind};

use super::{
    end::Connection,
    letter::{Happening, Lane},
    sending::Ticket,
    wire::Wire,
};
use crate::sim::trace::Step;

/// Connections, which break and are replaced.
impl Wire {
    /// The present connection of a process to a server.
    pub(in crate::sim) fn lane(&self, process: usize, node: usize, number: usize) -> Lane {
        let epoch = self.ends[process].lanes[node][number].epoch;
        Lane { process, node, number, epoch }
    }

    /// A connection breaks: what is on it is lost, late or in time, and its sender does not learn
    /// which.
    pub(super) fn reset(&mut self, process: usize, node: usize, number: usize) {
        self.note(|| Step::Reset { process, node, lane: number });
        let (now, weather) = (self.now(), self.weather);
        let ends = (process, node, number);
        let here = |lane: Lane| (lane.process, lane.node, lane.number) == ends;
        let keys: Vec<_> = self.happenings.keys().copied().collect();
        for key in keys {
            let of_lane = match self.happenings.get(&key) {
                Some(Happening::Arrival(letter)) => here(letter.lane),
                Some(Happening::Reply { lane, .. }) => here(*lane),
                _ => false,
            };
            if !of_lane {
                continue;
            }
            let (slot, letter) = match self.happenings.remove(&key) {
                Some(Happening::Arrival(letter)) => (letter.slot.clone(), Some(letter)),
                Some(Happening::Reply { slot, .. }) => (Some(slot), None),
                _ => continue,
            };
            if let Some(letter) = letter {
                match self.dice.below(3) {
                    0 => {}
                    1 => {
                        let at = now + weather.detour(&self.dice);
                        self.schedule(at, Happening::Arrival(letter));
                    }
                    _ => drop(self.happenings.insert(key, Happening::Arrival(letter))),
                }
            }
            // The sender learns of it at once, or by its deadline.
            if let Some(slot) = slot.filter(|_| self.dice.below(3) > 0) {
                slot.fill(Err(broken()));
            }
        }
        self.replace(process, node, number);
        let connection = &mut self.ends[process].lanes[node][number];
        connection.broken_before = connection.epoch;
    }

    fn replace(&mut self, process: usize, node: usize, number: usize) {
        let connection = &mut self.ends[process].lanes[node][number];
        let Connection { epoch, broken_before, .. } = *connection;
        *connection = Connection { epoch: epoch + 1, broken_before, ..Connection::default() };
    }

    /// A command had its time: its connection is replaced.
    pub(in crate::sim) fn time_out(&mut self, ticket: &Ticket) -> StoreError {
        let Ticket { lane, call, .. } = *ticket;
        self.note(|| Step::TimedOut { process: lane.process, call });
        self.give_up(lane);
        silent()
    }

    /// Another server is the master now: nobody waits for the answer of the old one.
    pub(in crate::sim) fn left(&mut self, ticket: &Ticket) -> StoreError {
        self.give_up(ticket.lane);
        broken()
    }

    /// A process uses a connection no more, unless it was replaced already.
    pub(in crate::sim) fn give_up(&mut self, Lane { process, node, number, epoch }: Lane) {
        if self.ends[process].lanes[node][number].epoch == epoch {
            self.replace(process, node, number);
        }
    }

    /// All connections to a server break.
    pub(in crate::sim) fn hang_up(&mut self, node: usize) {
        for process in 0..self.ends.len() {
            (0..Lane::ALL).for_each(|number| self.reset(process, node, number));
            if self.ends[process].subscribed == Some(node) {
                self.unsubscribe(process);
            }
        }
    }
}

fn silent() -> StoreError {
    let what = "nothing was heard before the deadline";
    StoreError::new(StoreErrorKind::Indeterminate, what, "repeat the command")
}

fn broken() -> StoreError {
    StoreError::new(StoreErrorKind::Indeterminate, "the connection broke", "repeat the command")
}
