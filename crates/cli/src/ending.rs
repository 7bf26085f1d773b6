//! How a command ends: its exit code, and the line that says why.

#![expect(clippy::needless_pass_by_value, reason = "errors and texts are given away here")]

use std::io;

use leasehold::error::{
    AcquireError, ConnectError, InspectError, ListError, StoreError, StoreErrorKind,
};
use nix::errno::Errno;

/// Why a command has not done its work.
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
    /// The work of a `--once` was done before.
    Done,
    /// The output cannot be written.
    Output,
    /// A signal came before the command was begun. Its exit code tells all, without a line.
    Interrupted(u8),
}

impl Cause {
    /// Those whose exit codes `-E` sets, by the names that it has for them.
    pub(crate) const NAMED: [(&str, Self); 7] = [
        ("busy", Self::Busy),
        ("lost", Self::Lost),
        ("unended", Self::Unended),
        ("unreachable", Self::Unreachable),
        ("config", Self::Config),
        ("usage", Self::Usage),
        ("done", Self::Done),
    ];

    /// The exit code, as in `sysexits.h`, unless `-E` sets another.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Usage => 64,
            Self::Unreachable => 69,
            Self::Output => 74,
            Self::Busy => 75,
            Self::Lost => 76,
            Self::Unended => 77,
            Self::Config => 78,
            Self::Done => 0,
            Self::Interrupted(code) => code,
        }
    }
}

/// A command that has not done its work: why, and the line that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CliError {
    pub(crate) cause: Cause,
    pub(crate) text: String,
}

impl CliError {
    pub(crate) fn new(cause: Cause, text: impl ToString) -> Self {
        Self { cause, text: text.to_string() }
    }

    pub(crate) fn usage(text: impl ToString) -> Self {
        Self::new(Cause::Usage, text)
    }

    pub(crate) fn config(text: impl ToString) -> Self {
        Self::new(Cause::Config, text)
    }

    /// What the system has refused, and what to do about it.
    pub(crate) fn of_system(error: &io::Error) -> Self {
        let remedy = match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMFILE) => "; raise the limit of open files (ulimit -n)",
            Some(Errno::ENFILE) => "; raise the limit of open files of this machine (fs.file-max)",
            Some(Errno::EAGAIN) => "; raise the limit of processes (ulimit -u, pids.max)",
            Some(Errno::ENOMEM) => "; give it more memory",
            _ => "",
        };
        Self::config(format!("the system refuses what this command needs: {error}{remedy}"))
    }
}

fn of_store(error: &StoreError) -> Cause {
    match error.kind() {
        // Nobody gives this program another password while it runs, or more files.
        _ if error.is_refused_login() || lacks_files(error) => Cause::Config,
        StoreErrorKind::Config | StoreErrorKind::Corrupt => Cause::Config,
        StoreErrorKind::Definite | StoreErrorKind::Indeterminate => Cause::Unreachable,
    }
}

/// Whether this process, or the machine, has no file descriptors left.
fn lacks_files(error: &StoreError) -> bool {
    error.what().contains("has no file descriptors left")
}

impl From<ConnectError> for CliError {
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

impl From<AcquireError> for CliError {
    fn from(error: AcquireError) -> Self {
        let cause = match &error {
            AcquireError::Timeout(_) => Cause::Busy,
            AcquireError::Lost(_) => Cause::Lost,
            AcquireError::Options { .. } => Cause::Usage,
            AcquireError::Store(error) => of_store(error),
            AcquireError::Unavailable(gone) if lacks_files(&gone.error) => Cause::Config,
            _ => Cause::Unreachable,
        };
        Self::new(cause, error)
    }
}

impl From<InspectError> for CliError {
    fn from(error: InspectError) -> Self {
        let cause = match &error {
            InspectError::Store(error) => of_store(error),
            _ => Cause::Usage,
        };
        Self::new(cause, error)
    }
}

impl From<ListError> for CliError {
    fn from(error: ListError) -> Self {
        Self::new(of_store(error.store_error()), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_told_with_its_limit() {
        for (errno, says) in [
            (Errno::EMFILE, "(ulimit -n)"),
            (Errno::ENFILE, "fs.file-max"),
            (Errno::EAGAIN, "(ulimit -u, pids.max)"),
            (Errno::ENOMEM, "memory"),
            (Errno::EACCES, "Permission denied"),
        ] {
            let failure = CliError::of_system(&errno.into());
            assert_eq!(failure.cause, Cause::Config);
            assert!(failure.text.contains(says), "{}", failure.text);
        }
    }
}
