use crate::{
    store::{Command, StoreError},
    types::{AcquisitionId, Fence, LockName},
};

/// What one command is about. A batch about several locks names none of them.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The kind of the command, as the log shows it.
    pub command: &'static str,
    /// The lock.
    pub lock: Option<LockName>,
    /// The lease and its fence, where there is one already.
    pub lease: Option<(AcquisitionId, Fence)>,
}

impl Subject {
    /// The name that is inspected to find out whether the server answers.
    pub const PROBE: &'static str = "leasehold:probe";

    pub(super) fn of(command: &Command) -> Self {
        let (lock, lease) = match command {
            Command::Acquire(one) => (Some(&one.name), None),
            Command::Withdraw(one) => (Some(&one.name), None),
            Command::Hold(one) => (Some(&one.name), Some((one.id, one.fence))),
            Command::Release(one) => (Some(&one.name), Some((one.id, one.fence))),
            Command::ForceRelease(one) => (Some(&one.name), Some((one.id, one.fence))),
            Command::Heartbeat(all) => (only(&all.batch).map(|one| &one.name), None),
            Command::Inspect(all) => (only(&all.names), None),
            Command::Renew(all) => {
                let one = only(&all.batch);
                (one.map(|one| &one.name), one.map(|one| (one.id, one.fence)))
            }
            Command::Scan(_) => (None, None),
        };
        Self { command: command.word(), lock: lock.cloned(), lease }
    }

    /// Whether the command only asks whether the server answers.
    pub(super) fn is_probe(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.as_str() == Self::PROBE)
    }

    /// Logs that the command failed: as a warning if that is news, otherwise for debugging.
    pub(super) fn log_failure(&self, error: &StoreError, is_news: bool) {
        macro_rules! log {
            ($level:ident, $what:literal) => {
                tracing::$level!(
                    command = self.command,
                    lock = self.lock.as_ref().map(tracing::field::display),
                    lease = self.lease.map(|(id, _)| tracing::field::display(id)),
                    fence = self.lease.map(|(_, fence)| tracing::field::display(fence)),
                    %error,
                    $what
                )
            };
        }
        match (is_news, error.is_answer()) {
            (false, _) => log!(debug, "a command failed"),
            (true, true) => log!(warn, "the server refused a command"),
            (true, false) => log!(warn, "a command was not answered, or could not be sent"),
        }
    }
}

fn only<T>(batch: &[T]) -> Option<&T> {
    if let [one] = batch { Some(one) } else { None }
}
