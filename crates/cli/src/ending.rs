//! How a command ends: its exit code, and the line that says why.

#![expect(clippy::needless_pass_by_value, reason = "errors and texts are given away here")]

use leasehold::error::{
    AcquireError, ConnectError, InspectError, ListError, StoreError, StoreErrorKind,
};

use crate::output::write_err;

/// Why a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The arguments are wrong.
    Usage,
    /// The server is out of reach, or refuses for now.
    Unreachable,
    /// Others hold the lock.
    Busy,
    /// The lease was lost.
    Lost,
    /// The lease was lost, and the command could not be ended.
    Unended,
    /// Something has to be changed on the server, or in the credentials.
    Config,
    /// The output cannot be written.
    Output,
}

/// The exit code of an output that cannot be written, as in `sysexits.h`.
const OUTPUT: u8 = 74;

/// The exit codes of the other causes; those of `sysexits.h`, unless `-E` sets others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCodes {
    pub(crate) usage: u8,
    pub(crate) unreachable: u8,
    pub(crate) busy: u8,
    pub(crate) lost: u8,
    pub(crate) unended: u8,
    pub(crate) config: u8,
    /// The exit code of a `--once` that was done before.
    pub(crate) done: u8,
}

impl Default for ExitCodes {
    fn default() -> Self {
        Self { usage: 64, unreachable: 69, busy: 75, lost: 76, unended: 77, config: 78, done: 0 }
    }
}

impl ExitCodes {
    pub(crate) fn of(self, cause: Cause) -> u8 {
        match cause {
            Cause::Usage => self.usage,
            Cause::Unreachable => self.unreachable,
            Cause::Busy => self.busy,
            Cause::Lost => self.lost,
            Cause::Unended => self.unended,
            Cause::Config => self.config,
            Cause::Output => OUTPUT,
        }
    }
}

/// A command that failed: why, and the line that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(cause: Cause, text: impl ToString) -> Self {
        Self { cause, text: text.to_string() }
    }

    pub(crate) fn usage(text: impl ToString) -> Self {
        Self::new(Cause::Usage, text)
    }

    /// Writes the line.
    pub(crate) fn tell(&self) {
        tell(&self.text);
    }
}

/// Writes one line for people to the standard error.
pub(crate) fn tell(text: impl ToString) {
    let text = text.to_string();
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    write_err(&format!("leasehold: {}\n", lines.join(" ")));
}

fn of_store(error: &StoreError) -> Cause {
    match error.kind() {
        // Nobody gives this program another password while it runs.
        _ if error.is_refused_login() => Cause::Config,
        StoreErrorKind::Config | StoreErrorKind::Corrupt => Cause::Config,
        StoreErrorKind::Definite | StoreErrorKind::Indeterminate => Cause::Unreachable,
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let cause = match &error {
            ConnectError::Store(error) => of_store(error),
            ConnectError::Address(_)
            | ConnectError::Namespace(_)
            | ConnectError::Setting(_)
            | ConnectError::Options(_) => Cause::Usage,
            _ => Cause::Config,
        };
        Self::new(cause, error)
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        let cause = match &error {
            AcquireError::Timeout(_) => Cause::Busy,
            AcquireError::Lost(_) => Cause::Lost,
            AcquireError::Options { .. } => Cause::Usage,
            AcquireError::Store(error) => of_store(error),
            _ => Cause::Unreachable,
        };
        Self::new(cause, error)
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        let cause = match &error {
            InspectError::Store(error) => of_store(error),
            _ => Cause::Usage,
        };
        Self::new(cause, error)
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        Self::new(of_store(error.store_error()), error)
    }
}
