use std::{fmt, sync::Arc};

use leasehold_core::Stamp;

use super::outcome::Outcome;
use crate::contract::Task;

/// A gate before a storage of its own, and what the suite asks of both.
///
/// Two names are one resource if, and only if, they are one thing in the storage.
pub trait GateSubject: fmt::Debug + Send + Sync + 'static {
    /// Starts an empty subject.
    fn start() -> Task<'static, Arc<dyn GateSubject>>
    where
        Self: Sized;

    /// Whether a name can be written and advanced; any other is [`Outcome::NoSuchName`] to one of
    /// the two at least.
    fn accepts(&self, name: &str) -> bool;

    /// Writes a value under a stamp, in one step with the gate's comparison.
    fn write<'a>(&'a self, name: &'a str, value: &'a str, presented: Stamp) -> Task<'a, Outcome>;

    /// Shuts out the holder before, by the name, as a user would who has nothing to write yet.
    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome>;

    /// The value that the storage holds, read past the gate; `None` before the first write.
    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>>;

    /// Writes a value as a service without a gate does: the control.
    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome>;

    /// What can go wrong between the gate and its storage; `None` where nothing lies between.
    fn faults(&self) -> Option<&dyn Faults>;
}

/// What a network or a crash does to one write.
///
/// A write is known by its value, which is the text of its stamp.
pub trait Faults: Send + Sync {
    /// Loses the answer to the next write of a lease: the storage carries it out. `gated` says
    /// whether it goes through the gate.
    fn lose_answer(&self, of: Stamp, gated: bool);

    /// Keeps the next write of a lease from the storage, until [`deliver`](Self::deliver).
    fn hold(&self, of: Stamp);

    /// Waits until a write is kept.
    fn held(&self) -> Task<'_>;

    /// Whether the fault that was asked for last has happened.
    fn has_struck(&self) -> bool;

    /// Whether the client repeats a request by itself when its connection was lost. Default:
    /// `false`.
    fn repeats(&self) -> bool {
        false
    }

    /// At how many points a write can be cut off, one after another: more than it has, so that the
    /// last ones cut nothing. 0 where a write is one step of the process itself.
    fn crash_points(&self) -> u64;

    /// Cuts the connection of the writer at a point, from now on: what was not sent by then never
    /// is.
    fn crash_at(&self, point: u64);

    /// Lets everything pass from now on.
    fn calm(&self);

    /// Lets the storage have the write that is kept, and waits until it has answered, or the writer
    /// has heard of it.
    fn deliver(&self) -> Task<'_>;
}
