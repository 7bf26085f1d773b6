use std::time::Duration;

use leasehold_core::{
    Instant,
    store::{Acquire, Command, Heartbeats, Release},
};

/// One thing that goes wrong with one message, while nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mishap {
    /// Whose message it is.
    pub process: usize,
    /// It strikes the first message that is sent from then on,
    pub from: Instant,
    /// and before then.
    pub until: Instant,
    /// What message it strikes.
    pub strikes: Strikes,
    /// What happens to that message.
    pub fate: Fate,
}

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strikes {
    /// The first acquire of a task that is willing to wait.
    FirstAsk,
    /// A heartbeat.
    Heartbeat,
    /// A release that queues anew.
    QueueingRelease,
    /// A release that does not.
    LastRelease,
    /// A push.
    Push,
}

/// What happens to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It does not arrive.
    Lost,
    /// It arrives, and its answer does not.
    Unanswered,
    /// It arrives after such a time, and others overtake it.
    Late(Duration),
    /// It does not arrive, nor does anything else on its connection until that is replaced.
    Mute,
}

impl Strikes {
    /// Whether a command is of this kind.
    fn is(self, command: &Command) -> bool {
        match (self, command) {
            (Self::FirstAsk, Command::Acquire(Acquire { wait, .. })) => wait.is_some(),
            (Self::QueueingRelease, Command::Release(Release { next, .. })) => next.is_some(),
            (Self::LastRelease, Command::Release(Release { next, .. })) => next.is_none(),
            (Self::Heartbeat, Command::Heartbeat(Heartbeats { .. })) => true,
            _ => false,
        }
    }
}

/// The mishaps that are still to come.
#[derive(Debug, Default)]
pub(super) struct Mishaps(Vec<Mishap>);

impl Mishaps {
    pub(super) fn add(&mut self, mishap: Mishap) {
        self.0.push(mishap);
    }

    /// No more of them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// What happens to a command that is sent now; `None` if no mishap strikes it.
    pub(super) fn strike(
        &mut self,
        now: Instant,
        process: usize,
        command: &Command,
    ) -> Option<Fate> {
        self.take(now, process, |strikes| strikes.is(command))
    }

    /// What happens to a push that is sent now.
    pub(super) fn strike_push(&mut self, now: Instant, process: usize) -> Option<Fate> {
        self.take(now, process, |strikes| strikes == Strikes::Push)
    }

    fn take(&mut self, now: Instant, process: usize, is: impl Fn(Strikes) -> bool) -> Option<Fate> {
        let strikes = |mishap: &Mishap| {
            mishap.process == process
                && (mishap.from..mishap.until).contains(&now)
                && is(mishap.strikes)
        };
        let at = self.0.iter().position(strikes)?;
        Some(self.0.swap_remove(at).fate)
    }
}
