use std::{
    env,
    ffi::OsString,
    io::{self, PipeWriter, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    unistd::Pid,
};

use super::{
    GUARD, STARTER,
    guard_rules::{Order, Patience},
    starter,
};

/// This program, also while its file is being replaced.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { env::current_exe() }
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
    pub(super) fn spawn(command: &[OsString]) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        // The starter inherits this end alone.
        fcntl(reader.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
        let mut starter = Command::new(this_program()?);
        starter
            .arg0("leasehold")
            .arg(STARTER)
            .arg(reader.as_raw_fd().to_string())
            .args(command)
            .process_group(0);
        let child = starter.spawn()?;
        Ok(Self { pid: pid_of(&child)?, pipe })
    }

    /// Lets it run the command, with these variables. If it was killed meanwhile, that is the end of
    /// the command.
    pub(super) fn go(mut self, variables: &[(&str, String)]) {
        let _ = self.pipe.write_all(&starter::order(variables));
    }
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let id = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Pid::from_raw(id))
}

/// The process that ends the command if this one cannot, in a process group of its own.
#[derive(Debug)]
pub(super) struct Guard {
    patience: Patience,
    group: Pid,
    process: Child,
}

impl Guard {
    /// Starts one for a process group.
    pub(super) fn spawn(patience: Patience, group: Pid) -> io::Result<Self> {
        Ok(Self { patience, group, process: Self::process(patience, group)? })
    }

    /// It learns the group as it starts: the run may be killed before it can tell anything.
    fn process(patience: Patience, group: Pid) -> io::Result<Child> {
        let millis = |time: Duration| time.as_millis().to_string();
        let mut guard = Command::new(this_program()?);
        guard.arg0("leasehold").args([
            GUARD,
            &millis(patience.grace),
            &millis(patience.grace_of_orphans),
            &group.to_string(),
        ]);
        // It may outlive the run by the grace, and must not keep anybody waiting for the end of its
        // output.
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        guard.current_dir("/").process_group(0);
        let guard = guard.spawn()?;
        if let Some(pipe) = &guard.stdin {
            // One that is stopped does not read: this process must not wait for it.
            fcntl(pipe.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(guard)
    }

    /// Tells it something. If it was killed, or has not read for long, another one takes its place.
    pub(super) fn tell(&mut self, order: Order) -> io::Result<()> {
        if self.write(order).is_ok() {
            return Ok(());
        }
        self.kill();
        self.process = Self::process(self.patience, self.group)?;
        self.write(order)
    }

    /// Lets it go: the command has ended, or was never begun.
    pub(super) fn dismiss(mut self) {
        if self.write(Order::Over).is_err() {
            // It must not take another group for that of the command, later.
            self.kill();
        }
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.try_wait();
    }

    fn write(&mut self, order: Order) -> io::Result<()> {
        let pipe = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(order.line().as_bytes())
    }
}
