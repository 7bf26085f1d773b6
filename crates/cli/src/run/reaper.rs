use nix::unistd::Pid;

use super::helper::GuardProcess;

/// Reaps the children that this process did not start: as the first process of a container it inherits
/// all that lose their parent. The command and the guard are left to those who wait for them.
#[cfg(target_os = "linux")]
pub(super) fn reap_inherited(command: Pid, guard: &mut GuardProcess) {
    use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};

    // It looks without reaping: the status of the command must not get lost.
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Ok(Some(pid)) = waitid(Id::All, look).map(|status| status.pid()) {
        if pid == command {
            return;
        }
        let is_reaped = if guard.is(pid) {
            guard.reap()
        } else {
            waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_ok()
        };
        if !is_reaped {
            return;
        }
    }
}

/// Elsewhere there are no containers with a first process.
#[cfg(not(target_os = "linux"))]
pub(super) fn reap_inherited(_command: Pid, _guard: &mut GuardProcess) {}
