//! What a run does about what happens to its command and to its lease.

use nix::sys::signal::Signal;

/// How a command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Code(u8),
    Killed(Signal),
}

impl Exit {
    /// The exit code that tells of it, as in shells.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Killed(signal) => {
                u8::try_from(signal as i32).map_or(u8::MAX, |number| number.saturating_add(128))
            }
        }
    }
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The command has ended. If the terminal belonged to its group, a key may have ended it.
    Ended(Exit, TerminalPlace),
    /// The command was stopped by a signal. If the terminal belongs to its group, or it was stopped by
    /// the keys of the terminal, the job of the shell stops with it.
    Stopped(Signal, TerminalPlace),
    /// This process received a signal.
    Told(Signal),
    /// This process goes on after it was stopped.
    Resumed,
    /// The lease was lost, or is so near its end that the command has to end.
    GraceBegins,
    /// The grace is over.
    GraceOver,
    /// No process of the command's group is left.
    GroupGone,
    /// After SIGKILL, processes of the group are left, and this process cannot end them.
    Unended,
}

/// Where the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalPlace {
    /// Without a terminal: nobody could let it go on.
    NoTerminal,
    /// In the foreground of a terminal.
    Foreground,
    /// In the background of a terminal.
    Background,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Send a signal to the command's group.
    Send(Signal),
    /// Give the command's group the terminal, if this one has it.
    GiveTerminal,
    /// Stop the job of this process, as a shell expects it.
    Stop,
    /// Send the signal of a key to the job of this process, too: a script around it ends with the
    /// command, as it would without a lock.
    Interrupt(Signal),
    /// Wait for the grace, and tell the guard.
    BeginGrace,
    /// Return.
    Finish(Exit),
    /// Return, although processes of the command run on.
    GiveUp,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Supervision {
    ended: Option<Exit>,
    is_lost: bool,
    is_killed: bool,
    /// The last signal that was forwarded.
    forwarded: Option<Signal>,
}

impl Supervision {
    /// What to do about an event, in order.
    pub(super) fn on(&mut self, event: Event) -> Vec<Deed> {
        match event {
            Event::Ended(exit, place) => self.on_end(exit, place),
            Event::Stopped(signal, place) => self.on_stop(signal, place),
            Event::Told(Signal::SIGCONT) | Event::Resumed => {
                vec![Deed::GiveTerminal, Deed::Send(Signal::SIGCONT)]
            }
            Event::Told(signal) => {
                self.forwarded = Some(signal);
                vec![Deed::Send(signal)]
            }
            Event::GraceBegins if self.is_lost || self.ended.is_some() => Vec::new(),
            Event::GraceBegins => {
                self.is_lost = true;
                // One that is stopped acts on the first when it goes on.
                vec![Deed::Send(Signal::SIGTERM), Deed::Send(Signal::SIGCONT), Deed::BeginGrace]
            }
            Event::GraceOver if self.is_lost && !self.is_killed => {
                self.is_killed = true;
                vec![Deed::Send(Signal::SIGKILL)]
            }
            Event::GroupGone if self.is_lost => self.ended.map(Deed::Finish).into_iter().collect(),
            Event::Unended if self.is_killed => vec![Deed::GiveUp],
            Event::GraceOver | Event::GroupGone | Event::Unended => Vec::new(),
        }
    }

    fn on_end(&mut self, exit: Exit, place: TerminalPlace) -> Vec<Deed> {
        self.ended = Some(exit);
        // After a loss, what the command leaves behind has to end, too.
        if self.is_lost {
            return Vec::new();
        }
        let mut deeds = Vec::new();
        if let Exit::Killed(signal @ (Signal::SIGINT | Signal::SIGQUIT)) = exit
            && place == TerminalPlace::Foreground
            && self.forwarded != Some(signal)
        {
            deeds.push(Deed::Interrupt(signal));
        }
        deeds.push(Deed::Finish(exit));
        deeds
    }

    fn on_stop(self, signal: Signal, place: TerminalPlace) -> Vec<Deed> {
        let by_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        match place {
            // It was told to end, and has to be able to.
            _ if self.is_lost => vec![Deed::Send(Signal::SIGCONT)],
            // It used the terminal before it had been given it.
            TerminalPlace::Foreground if by_terminal => vec![Deed::Send(Signal::SIGCONT)],
            TerminalPlace::Foreground | TerminalPlace::Background
                if by_terminal || signal == Signal::SIGTSTP =>
            {
                vec![Deed::Stop]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Signal::{SIGCONT, SIGINT, SIGKILL, SIGSTOP, SIGTERM, SIGTSTP, SIGTTIN};

    fn run(events: &[Event]) -> Vec<Deed> {
        let mut state = Supervision::default();
        events.iter().flat_map(|event| state.on(*event)).collect()
    }

    const LOSS: [Deed; 3] = [Deed::Send(SIGTERM), Deed::Send(SIGCONT), Deed::BeginGrace];
    const DONE: Exit = Exit::Code(0);

    #[test]
    fn a_signal_is_forwarded_and_the_end_is_the_commands() {
        let exit = Exit::Killed(SIGINT);
        assert_eq!(
            run(&[Event::Told(SIGINT), Event::Ended(exit, TerminalPlace::Foreground)]),
            [Deed::Send(SIGINT), Deed::Finish(exit)]
        );
        assert_eq!((exit.code(), Exit::Code(7).code()), (130, 7));
    }

    #[test]
    fn a_key_that_ends_the_command_ends_the_script_around_it() {
        let exit = Exit::Killed(SIGINT);
        let interrupted = [Deed::Interrupt(SIGINT), Deed::Finish(exit)];
        assert_eq!(run(&[Event::Ended(exit, TerminalPlace::Foreground)]), interrupted);
        for place in [TerminalPlace::Background, TerminalPlace::NoTerminal] {
            assert_eq!(run(&[Event::Ended(exit, place)]), [Deed::Finish(exit)]);
        }
    }

    #[test]
    fn a_loss_ends_the_command_and_then_all_that_it_started() {
        let deeds = run(&[
            Event::GraceBegins,
            Event::GraceBegins,
            Event::Ended(DONE, TerminalPlace::NoTerminal),
            Event::GroupGone,
        ]);
        assert_eq!(deeds, [&LOSS[..], &[Deed::Finish(DONE)]].concat());
        let deeds = run(&[
            Event::GraceBegins,
            Event::Ended(DONE, TerminalPlace::NoTerminal),
            Event::GraceOver,
            Event::GroupGone,
        ]);
        assert_eq!(deeds, [&LOSS[..], &[Deed::Send(SIGKILL), Deed::Finish(DONE)]].concat());
    }

    #[test]
    fn a_command_that_ignores_the_loss_is_killed() {
        let killed = Exit::Killed(SIGKILL);
        let deeds = run(&[
            Event::GraceBegins,
            Event::GraceOver,
            Event::GraceOver,
            Event::Ended(killed, TerminalPlace::NoTerminal),
            Event::GroupGone,
        ]);
        assert_eq!(deeds, [&LOSS[..], &[Deed::Send(SIGKILL), Deed::Finish(killed)]].concat());
    }

    #[test]
    fn what_cannot_be_ended_is_given_up_after_sigkill_and_not_before() {
        let deeds = run(&[Event::GraceBegins, Event::Unended, Event::GraceOver, Event::Unended]);
        assert_eq!(deeds, [&LOSS[..], &[Deed::Send(SIGKILL), Deed::GiveUp]].concat());
    }

    #[test]
    fn a_stop_by_the_terminal_stops_the_job_and_no_other_stop_does() {
        assert_eq!(run(&[Event::Stopped(SIGTSTP, TerminalPlace::Foreground)]), [Deed::Stop]);
        assert_eq!(run(&[Event::Stopped(SIGTTIN, TerminalPlace::Background)]), [Deed::Stop]);
        assert_eq!(run(&[Event::Resumed]), [Deed::GiveTerminal, Deed::Send(SIGCONT)]);
        for stop in [
            Event::Stopped(SIGSTOP, TerminalPlace::Foreground),
            Event::Stopped(SIGTSTP, TerminalPlace::NoTerminal),
        ] {
            assert_eq!(run(&[stop]), []);
        }
    }

    #[test]
    fn a_command_that_read_too_early_goes_on() {
        assert_eq!(
            run(&[Event::Stopped(SIGTTIN, TerminalPlace::Foreground)]),
            [Deed::Send(SIGCONT)]
        );
    }

    #[test]
    fn after_a_loss_nothing_stops() {
        let deeds = run(&[Event::GraceBegins, Event::Stopped(SIGTSTP, TerminalPlace::Foreground)]);
        assert_eq!(deeds[3..], [Deed::Send(SIGCONT)]);
    }
}
