use leasehold_core::StoreError;

use super::gate::Gate;

/// What goes wrong with a command.
///
/// "Lost" means for the sender that nothing is heard: the command resolves as
/// [`Indeterminate`](leasehold_core::StoreErrorKind::Indeterminate) at its deadline.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It fails with this error and is not executed.
    Fail(StoreError),
    /// The request is lost: not executed, nothing is heard.
    LoseRequest,
    /// The reply is lost: executed, nothing is heard.
    LoseReply,
    /// The connection breaks after the request: executed, and an indeterminate error at once.
    BreakReply,
    /// The request takes a detour: nothing is heard, and it is executed when the test calls
    /// [`deliver_late`](super::FaultyStore::deliver_late).
    LateRequest,
    /// It is executed and answered, and executed once more when the test calls
    /// [`deliver_late`](super::FaultyStore::deliver_late).
    Duplicate,
    /// The request waits at a gate before it is executed. If its sender gives up before (by the
    /// deadline or by dropping the future), it waits for
    /// [`deliver_late`](super::FaultyStore::deliver_late): it is on its way and cannot be called
    /// back.
    Delay(Gate),
    /// It is executed, and the reply waits at a gate.
    DelayReply(Gate),
    /// It never resolves, not even at its deadline: a store that breaks its word.
    Hang {
        /// Whether it is executed before.
        executed: bool,
    },
    /// The store panics, and does not execute it.
    Panic,
}

/// What goes wrong with a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushFault {
    /// It is never heard.
    Lose,
    /// It is held until the test calls [`deliver_pushes`](super::FaultyStore::deliver_pushes).
    Delay,
    /// It is heard now, and again when the test calls
    /// [`deliver_pushes`](super::FaultyStore::deliver_pushes).
    Duplicate,
}
