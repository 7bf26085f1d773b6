use std::fs::{File, OpenOptions};

use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};

use super::rules::TerminalPlace;

/// The terminal that controls this process, if there is one.
///
/// Its keys send signals to one process group, the foreground, which alone may read from it. The
/// command has a group of its own: so it is given the terminal, and this process takes it back.
#[derive(Debug)]
// ADR 0046
pub(super) struct Terminal {
    tty: Option<File>,
    pub(super) command: Pid,
}

impl Terminal {
    pub(super) fn of(command: Pid) -> Self {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok();
        if tty.is_some() {
            // So that this process may take the terminal back while it is in the background. The
            // command does not inherit it.
            let _ = SigSet::from(Signal::SIGTTOU).thread_block();
        }
        Self { tty, command }
    }

    /// Gives it to the command, if this process has it.
    pub(super) fn give(&self) {
        self.pass(getpgrp(), self.command);
    }

    /// Takes it back from the command.
    pub(super) fn take(&self) {
        self.pass(self.command, getpgrp());
    }

    fn pass(&self, from: Pid, to: Pid) {
        if let Some(tty) = self.tty.as_ref().filter(|tty| tcgetpgrp(tty) == Ok(from)) {
            let _ = tcsetpgrp(tty, to);
        }
    }

    /// Where the command runs.
    pub(super) fn place(&self) -> TerminalPlace {
        match &self.tty {
            None => TerminalPlace::NoTerminal,
            Some(tty) if tcgetpgrp(tty) == Ok(self.command) => TerminalPlace::Foreground,
            Some(_) => TerminalPlace::Background,
        }
    }
}
