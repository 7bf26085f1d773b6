use std::io;

use leasehold::time::{Clock, Instant, SystemClock};
use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{getpgrp, getpid},
};
use tokio::select;

use super::{
    grace::Grace,
    group::{Group, Members},
    guard_rules::Order,
    held::Held,
    helper::GuardProcess,
    rules::{Deed, Event, Exit, Supervision},
    signals::Signals,
    terminal::Terminal,
};
use crate::{
    durations::{DEATH, GROUP_LOOKS},
    ending::{Cause, CliError},
    output::tell,
};

/// How a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The command has ended by itself.
    Ended(Exit),
    /// The lease was lost, or about to be.
    Lost {
        failure: CliError,
        /// Until when the command had to end.
        grace_ends: Instant,
    },
}

/// A command that runs under a lease.
pub(super) struct Job<'a> {
    held: &'a Held,
    guard: &'a mut GuardProcess,
    signals: Signals,
    terminal: Terminal,
    group: Group,
    grace: Grace,
    state: Supervision,
    /// When the grace begins, unless the lease is renewed.
    due: Instant,
    /// `None` until the grace begins.
    ending: Option<CommandEnding>,
    /// A signal to act upon next: one that was received, or `SIGCONT` after a stop.
    told: Option<Signal>,
}

/// The end of a command whose lease ends.
struct CommandEnding {
    /// Why it has to end.
    reason: String,
    grace_ends: Instant,
    /// When it got SIGKILL.
    killed: Option<Instant>,
    /// What could not be ended, when it was looked for last.
    unended: Option<Members>,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        held: &'a Held,
        guard: &'a mut GuardProcess,
        signals: Signals,
        terminal: Terminal,
        grace: Grace,
    ) -> Self {
        let due = SystemClock.now() + grace.begins_in(held.remaining());
        let (group, state) = (Group(terminal.command), Supervision::default());
        Self { held, guard, signals, terminal, group, grace, state, due, ending: None, told: None }
    }

    /// Returns when the command has ended; after a loss, when its process group has.
    pub(super) async fn supervise(mut self) -> io::Result<Outcome> {
        loop {
            let news = self.news_of_command()?;
            self.guard.reap_others_than(self.group.0);
            // First the command, then the clock: if its end is seen before the grace is due, the guard has not
            // caused it. A grace that is due comes before all else.
            let mut events = Vec::from_iter(self.begin_if_due(news).await);
            events.extend(self.told.take().map(Event::Told));
            events.extend(news);
            let is_quiet = events.is_empty();
            if is_quiet {
                events.extend(self.look_at_group());
            }
            for event in events {
                for deed in self.state.on(event) {
                    if let Some(outcome) = self.perform(deed)? {
                        self.terminal.take();
                        return Ok(outcome);
                    }
                }
            }
            if is_quiet {
                self.wait().await;
            }
        }
    }

    /// Begins the grace if the lease was lost, or its end is as near as the grace is long. Otherwise it
    /// tells the guard when that will be: a renewal may have moved it.
    ///
    /// A grace that was due while this process stood still begins in any case: the guard has begun it.
    async fn begin_if_due(&mut self, news: Option<Event>) -> Option<Event> {
        if self.ending.is_some() {
            return None;
        }
        let (held, grace, now) = (self.held, self.grace, SystemClock.now());
        let reason = if !held.is_held() {
            held.lost().await
        } else if !grace.is_after && now >= self.due {
            held.near_end()
        } else {
            let begins_in = grace.begins_in(held.remaining());
            if !begins_in.is_zero() {
                self.due = now + begins_in;
            }
            self.tell_guard(Order::Begins(self.due));
            return None;
        };
        // What this process has slept through is a part of the grace.
        let grace_ends = self.due.min(now) + grace.time;
        self.ending = Some(CommandEnding { reason, grace_ends, killed: None, unended: None });
        Some(Event::GraceBegins { had_ended: matches!(news, Some(Event::Ended(..))) })
    }

    /// Waits for a signal, for the end of the lease, or until it is time to look again.
    async fn wait(&mut self) {
        let (shortest, longest) = GROUP_LOOKS.into_inner();
        let now = SystemClock.now();
        let pause = match &self.ending {
            None => self.grace.pause(self.held.remaining()),
            Some(CommandEnding { killed: None, grace_ends, .. }) => {
                grace_ends.saturating_since(now).min(shortest)
            }
            Some(CommandEnding { killed: Some(killed), .. }) => {
                now.saturating_since(*killed).clamp(shortest, longest)
            }
        };
        select! {
            biased;
            signal = self.signals.next() => {
                self.told = (signal != Signal::SIGCHLD).then_some(signal);
            }
            _ = self.held.lost(), if self.ending.is_none() => {}
            () = SystemClock.sleep_until(now + pause) => {}
        }
    }

    /// What has become of the command's processes in their grace, and after it.
    fn look_at_group(&mut self) -> Option<Event> {
        let (ending, now) = (self.ending.as_mut()?, SystemClock.now());
        let is_held = self.held.is_held();
        let Some(killed) = ending.killed else {
            if self.group.is_gone() {
                return Some(Event::GroupGone { is_held });
            }
            return (now >= ending.grace_ends).then_some(Event::GraceOver);
        };
        let Some(left) = self.group.left() else { return Some(Event::GroupGone { is_held }) };
        if !left.are_refused && now < killed + DEATH {
            return None;
        }
        // A lease that was renewed after all keeps others away for as long as they run.
        if is_held && ending.unended.is_none() {
            let why = why_unended(&left);
            tell(&format!("{left} runs on, {why}: the lock is kept until it ends"));
        }
        ending.unended = Some(left);
        (!is_held).then_some(Event::Unended)
    }

    /// Returns how the run has ended, when all is done.
    fn perform(&mut self, deed: Deed) -> io::Result<Option<Outcome>> {
        match deed {
            Deed::Send(signal) => self.send(signal),
            Deed::GiveTerminal => self.terminal.give(),
            Deed::BeginGrace => self.tell_guard(Order::Ending),
            Deed::Stop => self.stop()?,
            // This process takes the signal, and does not end by it.
            Deed::Interrupt(signal) => killpg(getpgrp(), signal)?,
            Deed::Finish(exit) => return Ok(Some(Outcome::Ended(exit))),
            Deed::Lose { was_ended } => {
                return Ok(self.ending.take().map(|ending| ending.lost(was_ended)));
            }
            Deed::GiveUp => return Ok(self.ending.take().map(CommandEnding::given_up)),
        }
        Ok(None)
    }

    /// Sends a signal to the command; one that is refused is told. When the lease ends, who is left is
    /// told after SIGKILL.
    fn send(&mut self, signal: Signal) {
        let is_refused = self.group.send(signal);
        if !is_refused {
            self.state.on(Event::Reached(signal));
        }
        match &mut self.ending {
            Some(ending) if signal == Signal::SIGKILL => ending.killed = Some(SystemClock.now()),
            None if is_refused && !matches!(signal, Signal::SIGWINCH | Signal::SIGCONT) => {
                if let Some(left) = self.group.left() {
                    tell(&format!(
                        "{signal} does not reach the command: {left} may not be signalled by this user"
                    ));
                }
            }
            _ => {}
        }
    }

    /// Stops all processes of this job, as the keys of the terminal would; returns when this one goes
    /// on.
    fn stop(&mut self) -> io::Result<()> {
        killpg(getpgrp(), Signal::SIGTSTP)?;
        // This process takes that signal, and does not stop by it.
        kill(getpid(), Signal::SIGSTOP)?;
        self.signals.pass_over(Signal::SIGTSTP);
        self.told = Some(Signal::SIGCONT);
        Ok(())
    }

    /// What the kernel tells of the command.
    fn news_of_command(&self) -> io::Result<Option<Event>> {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        let place = || self.terminal.place();
        Ok(match waitpid(self.group.0, Some(flags)) {
            Ok(WaitStatus::Exited(_, code)) => {
                Some(Event::Ended(Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)), place()))
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                Some(Event::Ended(Exit::Killed(signal), place()))
            }
            Ok(WaitStatus::Stopped(_, signal)) => Some(Event::Stopped(signal, place())),
            // Nothing new. ECHILD: it was reaped before, and only what it left behind is waited for.
            Ok(_) | Err(Errno::ECHILD | Errno::EINTR) => None,
            Err(error) => return Err(error.into()),
        })
    }

    /// If the guard was killed, and the system has no room for another one, the command goes on
    /// without: the next message tries again.
    fn tell_guard(&mut self, order: Order) {
        let _ = self.guard.tell(order);
    }
}

impl CommandEnding {
    /// The command has ended.
    fn lost(self, was_ended: bool) -> Outcome {
        // Not to be taken for a success: its guard may have ended it.
        let unknown =
            "had ended by then: by itself, or because the guard of the run had told it to";
        let how = if was_ended { "was ended" } else { unknown };
        let failure = CliError::new(Cause::Lost, format!("{}; the command {how}", self.reason));
        Outcome::Lost { failure, grace_ends: self.grace_ends }
    }

    /// Processes of the command run on.
    fn given_up(self) -> Outcome {
        let Self { reason, grace_ends, unended, .. } = self;
        let left = unended.unwrap_or_default();
        let remedy = if left.are_refused {
            "end it by hand, and run leasehold itself as the user of the command"
        } else {
            "see what it waits for, as a rule a disk or a file system of the network"
        };
        let why = why_unended(&left);
        let text = format!(
            "{reason}; the command could not be ended: {left} runs on without the lock, {why}: {remedy}"
        );
        Outcome::Lost { failure: CliError::new(Cause::Unended, text), grace_ends }
    }
}

/// Why processes run on after SIGKILL, behind their names.
fn why_unended(left: &Members) -> &'static str {
    if left.are_refused {
        "and this user may not end it"
    } else {
        "and has not ended after SIGKILL"
    }
}
