use std::{error::Error, process::ExitCode};

/// Why an example could not run to its end.
pub type Failure = Box<dyn Error + Send + Sync>;

/// How the process exits: as the run says, or with the reason why it could not run.
pub fn end(run: Result<ExitCode, Failure>) -> ExitCode {
    run.unwrap_or_else(|failure| {
        eprintln!("{failure}");
        ExitCode::FAILURE
    })
}
