//! What the program writes to its standard output, and to the standard error.

use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};

use crate::{
    ending::{Cause, CliError},
    library::of_program,
};

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderState {
    Reads,
    /// It has gone away early, as `head` does. That is no failure.
    IsGone,
}

/// Writes at once.
pub(crate) fn write_out(bytes: &[u8]) -> Result<ReaderState, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(ReaderState::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ReaderState::IsGone),
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
    let text = of_program(text);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    write_err(&format!("leasehold: {}\n", lines.join(" ")));
}

/// Asks on the terminal, and returns whether the answer is yes. Without a terminal it fails, and tells what
/// to do.
pub(crate) fn asked(question: &str, without: &str) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() {
        return Err(CliError::usage(format!("there is no terminal to ask on: {without}")));
    }
    write_err(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| {
        CliError::usage(format!("the answer cannot be read ({error}): {without}"))
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
