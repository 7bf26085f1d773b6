//! What the program writes to its standard output, and to the standard error.

use std::io::{self, ErrorKind, Write};

use crate::ending::{Cause, CliError};

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    /// It has gone away early, as `head` does. That is no failure.
    IsGone,
}

/// Writes at once.
pub(crate) fn write_out(bytes: &[u8]) -> Result<Reader, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::IsGone),
        Err(error) => {
            let text = format!("the output cannot be written: {error}");
            Err(CliError::new(Cause::Output, text))
        }
    }
}

/// Writes to the standard error, for people. Where nobody can read it, the exit code has to do.
pub(crate) fn write_err(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Writes one line for people to the standard error.
pub(crate) fn tell(text: &str) {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    write_err(&format!("leasehold: {}\n", lines.join(" ")));
}
