use std::time::Duration;

use crate::faulty::Gate;

/// What goes wrong with a message.
#[derive(Debug, Clone)]
pub enum Action {
    /// A push is lost alone. A request or a reply is lost with all that follows it in the same
    /// direction of the same connection, for a stream has no gaps.
    Drop,
    /// It is late by so much, and so is what comes behind it on the same connection.
    Delay(Duration),
    /// It arrives twice. The reply to the copy of a request is swallowed; a reply cannot come
    /// twice.
    Duplicate,
    /// A request is forwarded, and a copy kept until [`replay`](super::FaultProxy::replay).
    CopyLater,
    /// It waits at a gate, and what comes behind it on the same connection waits, too.
    Hold(Gate),
    /// A request is not forwarded but answered with these bytes; a reply or a push is replaced.
    Answer(Vec<u8>),
    /// The connection is reset, and the message is not forwarded.
    Reset,
    /// Half of the message is forwarded, then the connection is closed.
    Cut,
}
