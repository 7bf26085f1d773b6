use std::{fmt, sync::Weak};

use leasehold_core::{Instant, LockName, NamePattern, RuntimeId, StoreError, store::Listener};

use super::command::{NodeCommand, NodeReply};

/// One of the independent masters of a quorum.
pub trait QuorumNode: fmt::Debug + Send + Sync + 'static {
    /// Sends a command, and returns the answer, an error by the deadline at the latest.
    fn send(
        &self,
        command: NodeCommand,
        deadline: Instant,
    ) -> impl Future<Output = NodeReply> + Send;

    /// Sends many commands out of the way of all others; one answer for each.
    fn send_apart(
        &self,
        commands: Vec<NodeCommand>,
        deadline: Instant,
    ) -> impl Future<Output = Vec<NodeReply>> + Send;

    /// Names some of the locks that the node knows, from a place of its table on, and says where to
    /// go on; nowhere at the end. One short step.
    fn scan(
        &self,
        pattern: &NamePattern,
        at: u64,
        deadline: Instant,
    ) -> impl Future<Output = Result<(Vec<LockName>, Option<u64>), StoreError>> + Send;

    /// Whether commands can be sent at once; if not, it is made ready in the background.
    fn is_ready(&self) -> bool {
        true
    }

    /// The node has lost its boot mark: it is looked at anew.
    fn has_no_mark(&self) {}

    /// Passes the messages of the node for a runtime to a listener.
    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>);

    /// Where it is, for errors.
    fn place(&self) -> String;
}
