use leasehold_core::store::Command;

use super::faulty_store::Shared;

/// A command on its way, which its sender cannot call back: dropped before it has arrived, it waits
/// for a late delivery.
pub(super) struct Letter<'a> {
    shared: &'a Shared,
    command: Option<Command>,
}

impl<'a> Letter<'a> {
    /// Sends a command on its way.
    pub(super) fn send(shared: &'a Shared, command: Command) -> Self {
        Self { shared, command: Some(command) }
    }

    /// The command arrives; it is not delivered late any more.
    pub(super) fn arrive(mut self) -> Option<Command> {
        self.command.take()
    }
}

impl Drop for Letter<'_> {
    fn drop(&mut self) {
        if let Some(command) = self.command.take() {
            self.shared.deliver_later(command);
        }
    }
}
