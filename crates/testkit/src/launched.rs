//! Programs of servers are started until they answer, on ports that nobody else takes meanwhile.

use std::{
    fs::{self, File},
    io,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{patience::Patience, process::Process};

/// How often a start is tried when somebody else takes the port meanwhile.
const PORT_ATTEMPTS: u32 = 16;

/// Why a program did not start.
#[derive(Debug)]
pub(crate) enum LaunchError {
    /// The program is not there.
    Missing,
    /// Somebody else took the port.
    PortTaken,
    /// Anything else, with the log.
    Failed(String),
}

impl LaunchError {
    /// Ends the test.
    pub(crate) fn fail(&self, program: &str) -> ! {
        match self {
            Self::Missing => panic!(
                "redis-server is not installed, or LEASEHOLD_REDIS_SERVER names no program; \
                 `scripts/test.sh --install` installs it and runs the tests"
            ),
            Self::PortTaken => panic!("somebody else takes every port that was free"),
            Self::Failed(log) => panic!("{program} does not start: {log}"),
        }
    }
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Missing;
        }
        Self::Failed(error.to_string())
    }
}

/// Starts a program that writes to a log, and waits until it answers.
pub(crate) fn run(
    mut command: Command,
    log: &Path,
    limit: Duration,
    answers: impl Fn() -> bool,
) -> Result<Process, LaunchError> {
    let written = File::options().create(true).append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(written.try_clone()?).stderr(written);
    let process = Process::new(command.spawn()?);
    let ended = Patience::of(limit).until(|| match process.exit_status() {
        Some(status) => Some(Some(status)),
        None => answers().then_some(None),
    });
    let what = match ended {
        Some(None) => return Ok(process),
        Some(Some(_)) if text_of(log).contains("Address already in use") => {
            return Err(LaunchError::PortTaken);
        }
        Some(Some(status)) => format!("it ended at once, {status}"),
        None => format!("it did not answer in {limit:?}"),
    };
    Err(LaunchError::Failed(format!("{what}\n{}", text_of(log))))
}

/// Starts a program anew, with another port each time, until nobody else has taken it.
pub(crate) fn on_free_port(
    program: &str,
    log: &Path,
    mut start: impl FnMut() -> Result<Process, LaunchError>,
) -> Process {
    for _ in 0..PORT_ATTEMPTS {
        match start() {
            Ok(process) => return process,
            // Its log would make the next failure look like this one.
            Err(LaunchError::PortTaken) => forget(log),
            Err(error) => error.fail(program),
        }
    }
    LaunchError::PortTaken.fail(program)
}

/// What a program has written so far.
pub(crate) fn text_of(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

/// Begins an empty log.
pub(crate) fn forget(log: &Path) {
    // One that is not there is empty.
    let _ = fs::remove_file(log);
}
