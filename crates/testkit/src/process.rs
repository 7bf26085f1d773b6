use std::{
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A child of this process that is killed, by its own id, when the value is dropped.
///
/// Signals are sent under the lock of the [`Child`] and only while it has not been reaped, so
/// that none ever reaches a stranger that was given the same id.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Child>,
    id: u32,
}

impl Process {
    /// Takes a child over.
    pub(crate) fn new(child: Child) -> Self {
        Self { id: child.id(), child: Mutex::new(child) }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Stops the process with `SIGSTOP` and returns when it stands still.
    ///
    /// # Panics
    ///
    /// Panics if the process has ended.
    pub(crate) fn stop(&self) {
        let mut child = self.lock();
        assert!(is_alive(&mut child), "process {} has ended and cannot be stopped", self.id);
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::STOP).expect("a live child takes SIGSTOP");
        // NOWAIT leaves an exit to be reaped through `Child`.
        let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), changes) {}
    }

    /// Lets a stopped process go on with `SIGCONT`; without effect on one that has ended.
    pub(crate) fn cont(&self) {
        let mut child = self.lock();
        if is_alive(&mut child) {
            kill_process(Pid::from_child(&child), Signal::CONT)
                .expect("a live child takes SIGCONT");
        }
    }

    /// Asks the process with `SIGQUIT` to end; without effect on one that has ended.
    pub(crate) fn quit(&self) {
        let mut child = self.lock();
        if is_alive(&mut child) {
            kill_process(Pid::from_child(&child), Signal::QUIT)
                .expect("a live child takes SIGQUIT");
        }
    }

    /// Kills the process with `SIGKILL` and reaps it; without effect on one that has ended.
    pub(crate) fn kill(&self) -> Option<ExitStatus> {
        let mut child = self.lock();
        // Fails only for a child that was reaped before, whose status `wait` still knows.
        let _ = child.kill();
        child.wait().ok()
    }

    /// How the process ended, if it has.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.lock().try_wait().ok().flatten()
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_alive(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}
