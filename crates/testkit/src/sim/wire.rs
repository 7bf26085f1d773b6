use std::{collections::BTreeMap, fmt, sync::Weak, time::Duration};

use leasehold_core::{
    Clock, Instant, StoreError, StoreErrorKind,
    store::{Listener, Push},
};

use super::{
    dice::Dice,
    letter::{Happening, Lane, Letter},
    mishap::{Fate, Mishap, Mishaps},
    slot::{Outcome, Slot},
    spy::Spy,
    trace::{Step, Trace},
    weather::Weather,
};
use crate::{ManualClock, faulty::Command};

/// Everything that is on its way between processes and the server.
pub(super) struct Wire {
    clock: ManualClock,
    dice: Dice,
    pub(super) weather: Weather,
    pub(super) spy: Spy,
    pub(super) trace: Trace,
    mishaps: Mishaps,
    happenings: BTreeMap<(Instant, u64), Happening>,
    ends: Vec<End>,
    happened: u64,
    calls: u64,
}

/// One process's end of the wire.
#[derive(Default)]
struct End {
    lanes: [Connection; Lane::ALL],
    pushes_until: Instant,
    dead: bool,
    cut_until: Instant,
    misled_until: Instant,
    listener: Option<Weak<dyn Listener>>,
    subscribed: bool,
}

/// What is known of a connection: nothing on it overtakes.
#[derive(Debug, Default, Clone, Copy)]
struct Connection {
    epoch: u64,
    /// Of connections before this one nothing comes any more: they broke. One that was only
    /// replaced still delivers answers to those who wait for them.
    broken_before: u64,
    /// Nothing that is sent on it arrives.
    mute: bool,
    there_until: Instant,
    back_until: Instant,
}

/// A command that was sent, in its sender's hands.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) slot: Slot,
    lane: Lane,
    call: u64,
}

/// Things that do not overtake follow each other at least this closely.
const APART: Duration = Duration::from_nanos(1);
/// How long it takes to subscribe anew.
const RESUBSCRIBE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(200));

impl Wire {
    pub(super) fn new(clock: ManualClock, dice: Dice, spy: Spy, trace: Trace) -> Self {
        let (happenings, ends) = (BTreeMap::new(), Vec::new());
        let (weather, mishaps) = (Weather::calm(), Mishaps::default());
        let (happened, calls) = (0, 0);
        Self { clock, dice, weather, spy, trace, mishaps, happenings, ends, happened, calls }
    }

    /// Connects one more process.
    pub(super) fn connect(&mut self) -> usize {
        self.ends.push(End::default());
        self.ends.len() - 1
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn note(&mut self, step: impl FnOnce() -> Step) {
        let now = self.now();
        self.trace.add(now, step);
    }

    /// Sends a command, which cannot be called back.
    pub(super) fn send(&mut self, process: usize, command: Command) -> Ticket {
        let (now, weather) = (self.now(), self.weather);
        self.calls += 1;
        let (call, number) = (self.calls, Lane::of_command(&command));
        if self.dice.chance(weather.reset) {
            self.reset(process, number);
        }
        let lane = Lane { process, number, epoch: self.ends[process].lanes[number].epoch };
        let slot = Slot::default();
        let ticket = Ticket { slot: slot.clone(), lane, call };
        if self.ends[process].dead {
            return ticket;
        }
        self.spy.sent(now, &command);
        let mishap = self.mishaps.strike(now, process, &command);
        let connection = &mut self.ends[process].lanes[number];
        connection.mute |= mishap == Some(Fate::Mute);
        let is_mute = connection.mute;
        let (at, fate) = match mishap {
            _ if is_mute => (None, "mute"),
            Some(Fate::Lost | Fate::Mute) => (None, "lost"),
            Some(Fate::Late(time)) => (Some(now + time), "late"),
            Some(Fate::Unanswered) | None => self.arrival(lane),
        };
        self.note(|| Step::Sent { process, call, command: command.clone(), fate });
        if self.dice.chance(weather.duplicate) {
            let again = at.unwrap_or(now) + weather.detour(&self.dice);
            let copy = Letter {
                lane,
                call,
                command: command.clone(),
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
            let letter = Letter { lane, call, command, slot: Some(slot), refused, loses_reply };
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
        let connection = &mut self.ends[lane.process].lanes[lane.number];
        let at = at.max(connection.there_until + APART);
        connection.there_until = at;
        (Some(at), "on its way")
    }

    /// Sends the outcome of a command back to its process.
    pub(super) fn reply(&mut self, letter_lane: Lane, call: u64, slot: Slot, outcome: Outcome) {
        let (now, delay) = (self.now(), self.weather.delay(&self.dice));
        let connection = &mut self.ends[letter_lane.process].lanes[letter_lane.number];
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
    pub(super) fn delivers(&self, lane: Lane) -> bool {
        lane.epoch >= self.ends[lane.process].lanes[lane.number].broken_before
    }

    /// Sends a push, if its process listens.
    pub(super) fn push(&mut self, process: usize, push: &Push) {
        let (now, weather) = (self.now(), self.weather);
        if !self.ends[process].subscribed || self.ends[process].dead {
            self.note(|| Step::Pushed { process, push: push.clone(), fate: "unheard" });
            return;
        }
        if self.dice.chance(weather.unsubscribe) {
            self.unsubscribe(process);
            self.note(|| Step::Pushed { process, push: push.clone(), fate: "unheard" });
            return;
        }
        if self.dice.chance(weather.duplicate_push) {
            let again = now + weather.detour(&self.dice);
            self.schedule(again, Happening::Push { process, push: push.clone() });
        }
        let mishap = self.mishaps.strike_push(now, process);
        let (at, fate) = if let Some(Fate::Late(time)) = mishap {
            (Some(now + time), "late")
        } else if mishap.is_some() || self.dice.chance(weather.lose_push) {
            (None, "lost")
        } else if self.dice.chance(weather.late_push) {
            (Some(now + weather.detour(&self.dice)), "late")
        } else {
            (Some(self.push_arrival(process)), "on its way")
        };
        self.note(|| Step::Pushed { process, push: push.clone(), fate });
        if let Some(at) = at {
            self.schedule(at, Happening::Push { process, push: push.clone() });
        }
    }

    fn push_arrival(&mut self, process: usize) -> Instant {
        let at = self.now() + self.weather.delay(&self.dice);
        let end = &mut self.ends[process];
        let at = at.max(end.pushes_until + APART);
        end.pushes_until = at;
        at
    }

    /// A process wants to listen.
    pub(super) fn listen(&mut self, process: usize, listener: Weak<dyn Listener>) {
        self.ends[process].listener = Some(listener);
        let at = self.now() + self.weather.delay(&self.dice);
        self.schedule(at, Happening::Subscription { process });
    }

    pub(super) fn listener(&self, process: usize) -> Option<Weak<dyn Listener>> {
        self.ends[process].listener.clone()
    }

    /// The subscription of a process stands from now on, and it hears so.
    pub(super) fn subscribe(&mut self, process: usize) {
        self.ends[process].subscribed = true;
        self.note(|| Step::Subscribed { process });
        let at = self.push_arrival(process);
        self.schedule(at, Happening::Push { process, push: Push::Listening });
    }

    /// The subscription of a process breaks; after a while there is another.
    pub(super) fn unsubscribe(&mut self, process: usize) {
        if !std::mem::take(&mut self.ends[process].subscribed) {
            return;
        }
        self.note(|| Step::Unsubscribed { process });
        let at = self.now() + self.dice.spread(RESUBSCRIBE.0, RESUBSCRIBE.1);
        self.schedule(at, Happening::Subscription { process });
    }

    /// A connection breaks: what is on it is lost, late or in time, and its sender does not learn
    /// which.
    fn reset(&mut self, process: usize, number: usize) {
        self.note(|| Step::Reset { process, lane: number });
        let (now, weather) = (self.now(), self.weather);
        let here = |lane: Lane| lane.process == process && lane.number == number;
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
        self.replace(process, number);
        let connection = &mut self.ends[process].lanes[number];
        connection.broken_before = connection.epoch;
    }

    fn replace(&mut self, process: usize, number: usize) {
        let connection = &mut self.ends[process].lanes[number];
        let Connection { epoch, broken_before, .. } = *connection;
        *connection = Connection { epoch: epoch + 1, broken_before, ..Connection::default() };
    }

    /// A command had its time: its connection is replaced.
    pub(super) fn time_out(&mut self, ticket: &Ticket) -> StoreError {
        let Ticket { lane: Lane { process, number, .. }, call, .. } = *ticket;
        self.note(|| Step::TimedOut { process, call });
        if self.ends[process].lanes[number].epoch == ticket.lane.epoch {
            self.replace(process, number);
        }
        silent()
    }

    /// Nothing goes to or comes from a process for a while.
    pub(super) fn cut(&mut self, process: usize, until: Instant) {
        self.note(|| Step::Cut { process, until });
        let end = &mut self.ends[process];
        end.cut_until = end.cut_until.max(until);
        if self.dice.below(2) == 0 {
            self.unsubscribe(process);
        }
    }

    /// Something is to go wrong with one message.
    pub(super) fn mishap(&mut self, mishap: Mishap) {
        self.mishaps.add(mishap);
    }

    /// What a process sends goes to a replica until an instant.
    pub(super) fn mislead(&mut self, process: usize, until: Instant) {
        self.note(|| Step::Misled { process, until });
        let end = &mut self.ends[process];
        end.misled_until = end.misled_until.max(until);
    }

    /// Whether what a process sends goes to a replica.
    pub(super) fn is_misled(&self, process: usize) -> bool {
        self.now() < self.ends[process].misled_until
    }

    /// A process is no more; what it sent is on its way.
    pub(super) fn crash(&mut self, process: usize) {
        self.note(|| Step::Crashed { process });
        let end = &mut self.ends[process];
        (end.dead, end.subscribed) = (true, false);
    }

    pub(super) fn schedule(&mut self, at: Instant, happening: Happening) {
        self.happened += 1;
        self.happenings.insert((at, self.happened), happening);
    }

    pub(super) fn next_happening(&self) -> Option<Instant> {
        self.happenings.keys().next().map(|(at, _)| *at)
    }

    /// What is due, unless its process is cut off: then it is lost, or comes after that.
    pub(super) fn take_due(&mut self) -> Option<Happening> {
        let now = self.now();
        loop {
            let entry = self.happenings.first_entry().filter(|entry| entry.key().0 <= now)?;
            let happening = entry.remove();
            let cut_until = happening.process().map(|process| self.ends[process].cut_until);
            let Some(until) = cut_until.filter(|until| *until > now) else {
                return Some(happening);
            };
            if matches!(happening, Happening::Subscription { .. }) || self.dice.below(2) == 0 {
                self.schedule(until + self.weather.delay(&self.dice), happening);
            }
        }
    }

    /// Ends all cuts and mishaps, and lets everything that is on its way arrive soon, in the same
    /// order.
    pub(super) fn clear_up(&mut self, by: Duration) {
        self.weather = Weather::calm();
        self.mishaps.clear();
        let latest = self.now() + by;
        for end in &mut self.ends {
            (end.cut_until, end.misled_until) = (Instant::default(), Instant::default());
            end.pushes_until = end.pushes_until.min(latest);
            for connection in &mut end.lanes {
                connection.there_until = connection.there_until.min(latest);
                connection.back_until = connection.back_until.min(latest);
            }
        }
        let happenings = std::mem::take(&mut self.happenings);
        for ((at, number), happening) in happenings {
            self.happenings.insert((at.min(latest), number), happening);
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("weather", &self.weather)
            .field("on_the_way", &self.happenings.len())
            .finish_non_exhaustive()
    }
}

fn silent() -> StoreError {
    let what = "nothing was heard before the deadline";
    StoreError::new(StoreErrorKind::Indeterminate, what, "repeat the command")
}

fn broken() -> StoreError {
    StoreError::new(StoreErrorKind::Indeterminate, "the connection broke", "repeat the command")
}
