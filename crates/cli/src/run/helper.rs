use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, PipeWriter, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold::time::{Clock, Instant, SystemClock};
use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    sys::{
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::Pid,
};

use crate::durations::EVERY;

use super::{
    GUARD, STARTER,
    guard_rules::{Order, Patience},
    starter,
};

/// The processes beside this one.
#[derive(Debug)]
pub(super) struct Helpers {
    pub(super) starter: Starter,
    pub(super) guard: GuardProcess,
}

impl Helpers {
    pub(super) fn spawn(command: &[OsString], patience: Patience) -> io::Result<Self> {
        let starter = Starter::spawn(command)?;
        let guard = GuardProcess::spawn(patience, starter.pid)?;
        Ok(Self { starter, guard })
    }

    /// Ends them: nothing is to run.
    pub(super) fn dismiss(mut self) {
        self.guard.end();
        self.starter.dismiss();
    }
}

/// The file of this program, also while it is being replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// What the guard reads and writes.
const NULL: &str = "/dev/null";

/// This program in a process group of its own.
fn this_program() -> io::Result<Command> {
    let file = if cfg!(target_os = "linux") {
        there(THIS_PROGRAM, "mount /proc here: mount -t proc proc /proc")?
    } else {
        env::current_exe()?
    };
    let mut program = Command::new(file);
    program.arg0("leasehold").process_group(0);
    Ok(program)
}

/// A file that is there: in a chroot, `/proc` and `/dev` may be missing.
fn there(path: &str, remedy: &str) -> io::Result<PathBuf> {
    let missing = |error: io::Error| {
        io::Error::new(error.kind(), format!("{path} cannot be read ({error}); {remedy}"))
    };
    fs::symlink_metadata(path).map(|_| path.into()).map_err(missing)
}

/// The process that becomes the command, in a process group of its own.
#[derive(Debug)]
pub(super) struct Starter {
    /// Its process, and its group.
    pub(super) pid: Pid,
    pipe: PipeWriter,
}

impl Starter {
    /// Starts it. Nothing is run until [`go`](Self::go); if this is dropped, nothing ever is.
    fn spawn(command: &[OsString]) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        // The starter inherits this end alone.
        fcntl(reader.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
        let mut starter = this_program()?;
        starter.arg(STARTER).arg(reader.as_raw_fd().to_string()).args(command);
        let child = starter.spawn()?;
        Ok(Self { pid: pid_of(&child)?, pipe })
    }

    /// Lets it run the command, with these variables. If it was killed meanwhile, that is the end of
    /// the command.
    pub(super) fn go(mut self, variables: &[(&str, String)]) {
        let _ = self.pipe.write_all(starter::order(variables).as_bytes());
    }

    /// Ends it. It keeps the files of the caller open until then.
    fn dismiss(self) {
        // It is a child that nobody has reaped: the process id is its own.
        if kill(self.pid, Signal::SIGKILL).is_ok() {
            let _ = waitpid(self.pid, None);
        }
    }
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let id = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Pid::from_raw(id))
}

/// The process that ends the command if this one cannot, in a process group of its own.
#[derive(Debug)]
pub(super) struct GuardProcess {
    patience: Patience,
    group: Pid,
    process: Child,
    /// When it took the place of another one.
    replaced_at: Option<Instant>,
}

impl GuardProcess {
    /// Starts one for a process group.
    fn spawn(patience: Patience, group: Pid) -> io::Result<Self> {
        let process = Self::process(patience, group)?;
        Ok(Self { patience, group, process, replaced_at: None })
    }

    /// It learns the group as it starts: the run may be killed before it can tell anything.
    fn process(patience: Patience, group: Pid) -> io::Result<Child> {
        let millis = |time: Duration| time.as_millis().to_string();
        let mut guard = this_program()?;
        guard.arg(GUARD).args([patience.grace, patience.grace_of_orphans].map(millis));
        guard.arg(group.to_string());
        // It may outlive the run by the grace, and must not keep anybody waiting for the end of its
        // output.
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let spawned = guard.current_dir("/").spawn();
        let guard = spawned.map_err(|error| {
            there(NULL, "give it the devices: mount --bind /dev FOLDER/dev").err().unwrap_or(error)
        })?;
        if let Some(pipe) = &guard.stdin {
            // One that is stopped does not read: this process must not wait for it.
            fcntl(pipe.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(guard)
    }

    /// Tells it something. If it was killed, or has not read for long, another one takes its place; once a
    /// second at most, since a guard may end as soon as it starts.
    pub(super) fn tell(&mut self, order: Order) -> io::Result<()> {
        let Err(failure) = self.write(order) else { return Ok(()) };
        let now = SystemClock.now();
        if self.replaced_at.is_some_and(|at| now.saturating_since(at) < EVERY) {
            return Err(failure);
        }
        self.end();
        self.replaced_at = Some(now);
        self.process = Self::process(self.patience, self.group)?;
        self.write(order)
    }

    /// Reaps it if it has ended, and the children that this process did not start: as the first process of
    /// a container it inherits all that lose their parent. The command is left to those who wait for it.
    #[cfg(target_os = "linux")]
    pub(super) fn reap_others_than(&mut self, command: Pid) {
        use nix::sys::wait::{Id, WaitPidFlag, waitid};

        // It looks without reaping: the status of the command must not get lost.
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(Some(pid)) = waitid(Id::All, look).map(|status| status.pid()) {
            let is_reaped = if pid_of(&self.process).is_ok_and(|guard| guard == pid) {
                matches!(self.process.try_wait(), Ok(Some(_)))
            } else {
                pid != command && waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_ok()
            };
            if !is_reaped {
                return;
            }
        }
    }

    /// Elsewhere there are no containers with a first process.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn reap_others_than(&mut self, _command: Pid) {}

    /// Ends it: the command has ended, or was never begun. When this returns, nothing of it is left: it
    /// must not take another group for that of the command, later.
    pub(super) fn end(&mut self) {
        // A child of the same user that was not reaped: this cannot be refused.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn write(&mut self, order: Order) -> io::Result<()> {
        let pipe = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(order.line().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_is_named_with_what_brings_it() {
        assert_eq!(there(NULL, "mount it").unwrap(), PathBuf::from(NULL));
        let text = there("/no/such/file", "mount it").unwrap_err().to_string();
        assert!(
            text.starts_with("/no/such/file cannot be read (") && text.ends_with("; mount it"),
            "{text}"
        );
    }
}
