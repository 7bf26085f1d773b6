use std::{
    ffi::OsStr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold_testkit::{Patience, RedisServer};
use serde_json::Value;

/// How long anything may take, on a machine that is busy with other tests.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A lock.
pub(crate) const LOCK: &str = "jobs/backup";

/// The program, with some arguments, and without a setting in its environment.
pub(crate) fn leasehold<I>(words: I) -> Command
where
    I: IntoIterator<Item: AsRef<OsStr>>,
{
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["REDIS_URL", "REDIS_USERNAME", "REDIS_PASSWORD"] {
        command.env_remove(name);
    }
    for name in ["NAMESPACE", "LOCK", "FENCE", "LEASE", "AROUND"] {
        command.env_remove(format!("LEASEHOLD_{name}"));
    }
    command
}

/// What a program wrote, and its exit code; 128 + n if a signal ended it.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Finished {
    /// What it wrote, after an end without a complaint.
    pub(crate) fn well(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The one line of its complaint, after an end with this code.
    pub(crate) fn complaint(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "one line: {self:?}");
        self.err.strip_prefix("leasehold: ").unwrap_or_else(|| panic!("{self:?}")).trim_end()
    }

    /// Its complaint behind the lines that a shell under it wrote, after an end with this code.
    pub(crate) fn last_complaint(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        let mut told = self.err.lines().filter_map(|line| line.strip_prefix("leasehold: "));
        told.next_back().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Its output as one JSON document.
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.well()).expect("one document of JSON")
    }
}

/// Runs a command to its end; its output is small enough to stay in the pipe.
pub(crate) fn finished(command: &mut Command) -> Finished {
    Running::start(command).end()
}

/// A program under way; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("the program starts")))
    }

    /// Starts `leasehold run` with some arguments, and returns when its command has begun: a file
    /// shows it, which the command has to create.
    pub(crate) fn begun(command: &mut Command, file: &std::path::Path) -> Self {
        let running = Self::start(command);
        settled(|| file.exists().then_some(()));
        running
    }

    pub(crate) fn pid(&self) -> i32 {
        let child = self.0.as_ref().expect("it runs");
        child.id().try_into().expect("a process id")
    }

    pub(crate) fn kill(&mut self) {
        self.0.as_mut().expect("it runs").kill().expect("a child can be killed");
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(Some(_))))
    }

    pub(crate) fn end(mut self) -> Finished {
        use std::os::unix::process::ExitStatusExt;
        let mut child = self.0.take().expect("it runs");
        let ended = Patience::of(LIMIT).until(|| child.try_wait().expect("a child can be asked"));
        if ended.is_none() {
            child.kill().expect("a child can be killed");
        }
        let output = child.wait_with_output().expect("a child can be read");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().or_else(|| Some(128 + output.status.signal()?));
        let finished = Finished {
            code: code.unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(ended.is_some(), "not finished within {LIMIT:?}: {finished:?}");
        finished
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a probe answers, which may take a while.
pub(crate) fn settled<T>(probe: impl FnMut() -> Option<T>) -> T {
    Patience::of(LIMIT).until(probe).expect("it settles in time")
}

/// What `show --json` tells of a lock.
pub(crate) fn value(server: &RedisServer, name: &str) -> Value {
    finished(leasehold(["show", name, "--json"]).env("REDIS_URL", server.url())).json()
}
