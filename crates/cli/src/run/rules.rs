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
    /// This process received a signal; `SIGCONT` also when it goes on after it was stopped.
    Told(Signal),
    /// The lease was lost, or is so near its end that the command has to end. The command may have ended
    /// before this process could tell it to.
    GraceBegins { had_ended: bool },
    /// A signal of this process has reached the command.
    Reached(Signal),
    /// The grace is over.
    GraceOver,
    /// The grace has begun, and no process of the command's group is left.
    GroupGone { is_held: bool },
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
    /// Return: the command has ended by itself.
    Finish(Exit),
    /// Return: the command has ended because of its lease, or nobody knows why.
    Lose { was_ended: bool },
    /// Return, although processes of the command run on.
    GiveUp,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Supervision {
    ended: Option<Exit>,
    /// Whether the grace has begun.
    is_lost: bool,
    /// Whether the command had ended before this process could tell it to.
    had_ended: bool,
    /// Whether a signal that may end the command has reached it in its grace.
    was_reached: bool,
    /// The last signal that was forwarded.
    forwarded: Option<Signal>,
}

impl Supervision {
    /// What to do about an event, in order.
    pub(super) fn on(&mut self, event: Event) -> Vec<Deed> {
        match event {
            Event::Ended(exit, place) => self.on_end(exit, place),
            Event::Stopped(signal, place) => self.on_stop(signal, place),
            Event::Told(Signal::SIGCONT) => {
                vec![Deed::GiveTerminal, Deed::Send(Signal::SIGCONT)]
            }
            Event::Told(signal) => {
                self.forwarded = Some(signal);
                vec![Deed::Send(signal)]
            }
            Event::GraceBegins { had_ended } => {
                (self.is_lost, self.had_ended) = (true, had_ended);
                // One that is stopped acts on the first when it goes on.
                vec![Deed::Send(Signal::SIGTERM), Deed::Send(Signal::SIGCONT), Deed::BeginGrace]
            }
            Event::Reached(signal) => {
                // SIGCONT is refused to nobody of the same session, and ends nothing.
                self.was_reached |= self.is_lost && signal != Signal::SIGCONT;
                Vec::new()
            }
            Event::GraceOver => vec![Deed::Send(Signal::SIGKILL)],
            Event::GroupGone { is_held } => {
                self.ended.map(|exit| self.on_group_gone(exit, is_held)).into_iter().collect()
            }
            Event::Unended => vec![Deed::GiveUp],
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

    /// If no signal has reached the command, and the lease was renewed, nothing was lost.
    fn on_group_gone(self, exit: Exit, is_held: bool) -> Deed {
        if is_held && !self.had_ended && !self.was_reached {
            return Deed::Finish(exit);
        }
        Deed::Lose { was_ended: !self.had_ended }
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
    const BEGINS: Event = Event::GraceBegins { had_ended: false };
    const GONE: Event = Event::GroupGone { is_held: true };

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
        let begun =
            [BEGINS, Event::Reached(SIGTERM), Event::Ended(DONE, TerminalPlace::NoTerminal)];
        let lost = Deed::Lose { was_ended: true };
        let deeds = run(&[&begun[..], &[GONE]].concat());
        assert_eq!(deeds, [&LOSS[..], &[lost]].concat());
        let deeds = run(&[&begun[..], &[Event::GraceOver, GONE]].concat());
        assert_eq!(deeds, [&LOSS[..], &[Deed::Send(SIGKILL), lost]].concat());
    }

    #[test]
    fn a_command_that_ignores_the_loss_is_killed() {
        let killed = Exit::Killed(SIGKILL);
        let deeds = run(&[
            BEGINS,
            Event::GraceOver,
            Event::Reached(SIGKILL),
            GONE,
            Event::Ended(killed, TerminalPlace::NoTerminal),
            GONE,
        ]);
        let lost = Deed::Lose { was_ended: true };
        assert_eq!(deeds, [&LOSS[..], &[Deed::Send(SIGKILL), lost]].concat());
    }

    #[test]
    fn what_no_signal_has_reached_has_lost_nothing_if_its_lease_was_renewed() {
        let ended = Event::Ended(DONE, TerminalPlace::NoTerminal);
        let end_of = |events: &[Event]| *run(events).last().unwrap();
        assert_eq!(end_of(&[BEGINS, Event::Reached(SIGCONT), ended, GONE]), Deed::Finish(DONE));
        let lost = Deed::Lose { was_ended: true };
        assert_eq!(end_of(&[BEGINS, ended, Event::GroupGone { is_held: false }]), lost);
        assert_eq!(end_of(&[BEGINS, Event::Reached(SIGTERM), ended, GONE]), lost);
    }

    #[test]
    fn a_command_that_had_ended_may_have_been_told_to_by_its_guard() {
        let found = Event::GraceBegins { had_ended: true };
        let deeds = run(&[found, Event::Ended(DONE, TerminalPlace::NoTerminal), GONE]);
        assert_eq!(deeds, [&LOSS[..], &[Deed::Lose { was_ended: false }]].concat());
    }

    #[test]
    fn what_cannot_be_ended_is_given_up() {
        let deeds = run(&[BEGINS, Event::GraceOver, Event::Unended]);
        assert_eq!(deeds, [&LOSS[..], &[Deed::Send(SIGKILL), Deed::GiveUp]].concat());
    }

    #[test]
    fn a_stop_by_the_terminal_stops_the_job_and_no_other_stop_does() {
        assert_eq!(run(&[Event::Stopped(SIGTSTP, TerminalPlace::Foreground)]), [Deed::Stop]);
        assert_eq!(run(&[Event::Stopped(SIGTTIN, TerminalPlace::Background)]), [Deed::Stop]);
        assert_eq!(run(&[Event::Told(SIGCONT)]), [Deed::GiveTerminal, Deed::Send(SIGCONT)]);
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
        let deeds = run(&[BEGINS, Event::Stopped(SIGTSTP, TerminalPlace::Foreground)]);
        assert_eq!(deeds[3..], [Deed::Send(SIGCONT)]);
    }
}
