use std::time::Duration;

use leasehold_core::{Instant, store::Command};

use super::{
    letter::{Happening, Lane, Letter},
    slot::{Outcome, Slot},
    wire::{APART, Wire},
};
use crate::sim::{mishap::Fate, trace::Step};

/// A command that was sent, in its sender's hands.
#[derive(Debug)]
pub(in crate::sim) struct Ticket {
    pub(in crate::sim) slot: Slot,
    pub(in crate::sim) lane: Lane,
    pub(super) call: u64,
}

/// Commands, and their answers.
impl Wire {
    /// A process has decided to send a command.
    pub(in crate::sim) fn decided(&self, command: &Command) {
        self.spy.sent(self.now(), command);
    }

    /// Sends a command to a server, which cannot be called back.
    pub(in crate::sim) fn send(
        &mut self,
        process: usize,
        node: usize,
        command: Command,
        is_asking: bool,
        patience: Duration,
    ) -> Ticket {
        let (now, weather) = (self.now(), self.weather);
        self.calls += 1;
        let (call, number) = (self.calls, Lane::of_command(&command));
        if self.dice.chance(weather.reset) {
            self.reset(process, node, number);
        }
        let lane = self.lane(process, node, number);
        let slot = Slot::default();
        let ticket = Ticket { slot: slot.clone(), lane, call };
        if self.ends[process].dead {
            return ticket;
        }
        let mishap = self.mishaps.strike(now, process, &command);
        let connection = &mut self.ends[process].lanes[node][number];
        connection.mute |= mishap == Some(Fate::Mute);
        let is_mute = connection.mute;
        let (at, fate) = match mishap {
            _ if is_mute => (None, "mute"),
            Some(Fate::Lost | Fate::Mute) => (None, "lost"),
            Some(Fate::Late(time)) => (Some(now + time), "late"),
            Some(Fate::Unanswered) | None => self.arrival(lane),
        };
        self.note(|| Step::Sent { process, node, call, command: command.clone(), fate });
        if self.dice.chance(weather.duplicate) {
            let again = at.unwrap_or(now) + weather.detour(&self.dice);
            let copy = Letter {
                lane,
                call,
                command: command.clone(),
                is_asking,
                patience,
                slot: None,
                refused: false,
                loses_reply: true,
            };
            self.schedule(again, Happening::Arrival(copy));
        }
        if let Some(at) = at {
            let refused = self.dice.chance(weather.refuse);
            let loses_reply = self.dice.chance(weather.lose_reply);
            let loses_reply = loses_reply || mishap == Some(Fate::Unanswered);
            let letter = Letter {
                lane,
                call,
                command,
                is_asking,
                patience,
                slot: Some(slot),
                refused,
                loses_reply,
            };
            self.schedule(at, Happening::Arrival(letter));
        }
        ticket
    }

    /// When a command arrives that is sent now, if at all.
    fn arrival(&mut self, lane: Lane) -> (Option<Instant>, &'static str) {
        let (now, weather) = (self.now(), self.weather);
        if self.dice.chance(weather.lose_request) {
            return (None, "lost");
        }
        if self.dice.chance(weather.late) {
            return (Some(now + weather.detour(&self.dice)), "late");
        }
        let at = now + weather.delay(&self.dice);
        let connection = &mut self.ends[lane.process].lanes[lane.node][lane.number];
        let at = at.max(connection.there_until + APART);
        connection.there_until = at;
        (Some(at), "on its way")
    }

    /// Sends the outcome of a command back to its process.
    pub(in crate::sim) fn reply(
        &mut self,
        letter_lane: Lane,
        call: u64,
        slot: Slot,
        outcome: Outcome,
    ) {
        let (now, delay) = (self.now(), self.weather.delay(&self.dice));
        let Lane { process, node, number, .. } = letter_lane;
        let connection = &mut self.ends[process].lanes[node][number];
        if letter_lane.epoch < connection.broken_before {
            return;
        }
        let mut at = now + delay;
        if connection.epoch == letter_lane.epoch {
            at = at.max(connection.back_until + APART);
            connection.back_until = at;
        }
        self.schedule(at, Happening::Reply { lane: letter_lane, call, slot, outcome });
    }

    /// Whether answers still come on a connection, replaced or not.
    pub(in crate::sim) fn delivers(&self, lane: Lane) -> bool {
        lane.epoch >= self.ends[lane.process].lanes[lane.node][lane.number].broken_before
    }
}
