use leasehold_core::{Instant, LockName, store::Push};

use super::slot::{Outcome, Slot};
use crate::faulty::Command;

/// One connection of a process, until it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) process: usize,
    pub(super) number: usize,
    pub(super) epoch: u64,
}

impl Lane {
    /// Connections that carry what is about a name; each name has one of them.
    pub(super) const NAMED: usize = 2;
    /// The connection of renewals.
    pub(super) const RENEWALS: usize = Self::NAMED;
    /// How many connections a process has, beside its subscription.
    pub(super) const ALL: usize = Self::NAMED + 1;

    /// The connection to which a name is pinned.
    pub(super) fn of_name(name: &LockName) -> usize {
        let sum: usize = name.as_str().bytes().map(usize::from).sum();
        sum % Self::NAMED
    }

    /// The connection that carries a command.
    pub(super) fn of_command(command: &Command) -> usize {
        match command {
            Command::Renew { .. } => Self::RENEWALS,
            other => other.names().first().map_or(0, |name| Self::of_name(name)),
        }
    }
}

/// A command on its way to the server.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) lane: Lane,
    pub(super) call: u64,
    pub(super) command: Command,
    /// `None` for a copy, for which no sender waits.
    pub(super) slot: Option<Slot>,
    pub(super) refused: bool,
    pub(super) loses_reply: bool,
}

/// What is to happen in the network at some instant.
pub(super) enum Happening {
    /// A command arrives at the server.
    Arrival(Letter),
    /// The outcome of a command arrives at its process.
    Reply { lane: Lane, call: u64, slot: Slot, outcome: Outcome },
    /// A push arrives at a process.
    Push { process: usize, push: Push },
    /// The server hears that a process wants to listen.
    Subscription { process: usize },
    /// A message that is not for the server of locks, such as a write to a storage.
    Visit(Box<dyn FnOnce(Instant) + Send>),
}

impl Happening {
    /// The process whose network it needs.
    pub(super) fn process(&self) -> Option<usize> {
        match self {
            Self::Arrival(letter) => Some(letter.lane.process),
            Self::Reply { lane, .. } => Some(lane.process),
            Self::Push { process, .. } | Self::Subscription { process } => Some(*process),
            Self::Visit(_) => None,
        }
    }
}
