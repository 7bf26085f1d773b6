use std::time::Duration;

use leasehold_core::{
    Instant, LockName,
    store::{Command, Push, Renewals},
};

use super::{
    question::{Question, Reply},
    slot::{Outcome, Slot},
};
use crate::{faulty::CommandFacts, sim::servers::News};

/// One connection of a process, until it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) struct Lane {
    pub(in crate::sim) process: usize,
    /// The server that it leads to.
    pub(in crate::sim) node: usize,
    pub(in crate::sim) number: usize,
    pub(in crate::sim) epoch: u64,
}

impl Lane {
    /// Connections that carry what is about a name; each name has one of them.
    pub(in crate::sim) const NAMED: usize = 2;
    /// The connection of renewals.
    pub(in crate::sim) const RENEWALS: usize = Self::NAMED;
    /// The first of those that wait for acknowledgements, which are as many.
    const ACKNOWLEDGED: usize = Self::NAMED + 1;
    /// How many connections a process has to a server, beside its subscription.
    pub(in crate::sim) const ALL: usize = Self::ACKNOWLEDGED * 2;

    /// The connection to which a name is pinned.
    pub(in crate::sim) fn of_name(name: &LockName) -> usize {
        let sum: usize = name.as_str().bytes().map(usize::from).sum();
        sum % Self::NAMED
    }

    /// The connection that carries a command.
    pub(in crate::sim) fn of_command(command: &Command) -> usize {
        let number = match command {
            Command::Renew(Renewals { .. }) => Self::RENEWALS,
            other => other.names().first().map_or(0, |name| Self::of_name(name)),
        };
        if command.acks().are_asked() { Self::ACKNOWLEDGED + number } else { number }
    }
}

/// A command on its way to the server.
#[derive(Debug)]
pub(in crate::sim) struct Letter {
    pub(in crate::sim) lane: Lane,
    pub(in crate::sim) call: u64,
    pub(in crate::sim) command: Command,
    /// Whether `ASKING` came before it.
    pub(in crate::sim) is_asking: bool,
    /// How long its sender waits.
    pub(in crate::sim) patience: Duration,
    /// `None` for a copy, for which no sender waits.
    pub(in crate::sim) slot: Option<Slot>,
    pub(in crate::sim) refused: bool,
    pub(in crate::sim) loses_reply: bool,
}

/// What is to happen in the network at some instant.
pub(in crate::sim) enum Happening {
    /// A command arrives at the server.
    Arrival(Letter),
    /// The outcome of a command arrives at its process.
    Reply { lane: Lane, call: u64, slot: Slot, outcome: Outcome },
    /// A process asks where the master is, or who owns the slots.
    Question(Question),
    /// The answer to a question arrives at its process.
    Told(Reply),
    /// Servers and Sentinels tell each other something.
    News(News),
    /// A push arrives at a process.
    Push { process: usize, push: Push },
    /// The server hears that a process wants to listen.
    Subscription { process: usize },
    /// A message that is not for the server of locks, such as a write to a storage.
    Visit(Box<dyn FnOnce(Instant) + Send>),
}

impl Happening {
    /// The process whose network it needs.
    pub(in crate::sim) fn process(&self) -> Option<usize> {
        match self {
            Self::Arrival(letter) => Some(letter.lane.process),
            Self::Reply { lane, .. } => Some(lane.process),
            Self::Push { process, .. } | Self::Subscription { process } => Some(*process),
            Self::Question(question) => Some(question.process),
            Self::Told(reply) => Some(reply.process),
            Self::News(_) | Self::Visit(_) => None,
        }
    }
}
