use std::{
    future::{Future, pending, ready},
    io,
    pin::Pin,
    time::Duration,
};

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
    reaper::reap_inherited,
    rules::{Deed, Event, Exit, Supervision},
    signals::Signals,
    terminal::Terminal,
};
use crate::{
    durations::{DEATH, GROUP_LOOKS},
    ending::tell,
};

/// A command that runs under a lease.
pub(super) struct Job<'a> {
    pub(super) group: Group,
    pub(super) held: &'a Held,
    pub(super) guard: &'a mut GuardProcess,
    pub(super) signals: &'a mut Signals,
    pub(super) terminal: &'a Terminal,
    pub(super) grace: Grace,
    pub(super) ttl: Duration,
}

/// How a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The command has ended by itself.
    Ended(Exit),
    /// The lease was lost, or about to be. The command was ended, or had ended before this process could
    /// end it: by itself, or because the guard had told it to.
    Lost { loss: Loss, was_ended: bool },
    /// The same, but these processes of it run on.
    Unended(Loss, Members),
}

/// Why a command was ended, and until when it had to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) reason: String,
    pub(super) grace_ends: Instant,
}

impl Job<'_> {
    /// Returns when the command has ended; after a loss, when its process group has.
    pub(super) async fn supervise(mut self) -> io::Result<Outcome> {
        let lost = Some(Box::pin(self.held.lost()) as Pin<Box<dyn Future<Output = String>>>);
        let due = SystemClock.now() + self.grace.begins_in(self.held.remaining());
        let mut lease = LeaseWatch { lost, end: None, due, ending: None };
        let (mut state, mut told) = (Supervision::default(), None);
        loop {
            let news = self.news_of_command()?;
            reap_inherited(self.group.0, self.guard);
            // The clock is read after the look at the command: an end that was seen before the grace is due
            // is not the deed of the guard. A grace that is due comes before all else.
            lease.look().await;
            let mut events: Vec<_> = self.begin_if_due(&mut lease, &news).into_iter().collect();
            events.extend(told.take());
            events.extend(news);
            let is_quiet = events.is_empty();
            if is_quiet && lease.ending.is_some() {
                events = self.look_at_group(&mut lease);
            }
            for event in events {
                for deed in state.on(event) {
                    if deed == Deed::Stop {
                        self.stop()?;
                        told = Some(Event::Resumed);
                    } else if let Some(outcome) = self.perform(deed, &mut lease)? {
                        self.terminal.take();
                        return Ok(outcome);
                    }
                }
            }
            if is_quiet {
                let pause = self.pause(&lease);
                select! {
                    biased;
                    signal = self.signals.next() => {
                        told = (signal != Signal::SIGCHLD).then_some(Event::Told(signal));
                    }
                    () = lease.ended() => {}
                    () = SystemClock.sleep_until(SystemClock.now() + pause) => {}
                }
            }
        }
    }

    /// Begins the grace if the lease was lost, or its end is as near as the grace is long. Otherwise it
    /// tells the guard when that will be: a renewal may have moved it.
    ///
    /// A grace that was due while this process stood still begins in any case: the guard has begun it.
    fn begin_if_due(&mut self, lease: &mut LeaseWatch, news: &[Event]) -> Option<Event> {
        if lease.ending.is_some() {
            return None;
        }
        let now = SystemClock.now();
        let is_due = self.grace.is_before_the_end() && now >= lease.due;
        let Some(reason) = lease.end.take().or_else(|| is_due.then(|| self.held.near_end())) else {
            let begins_in = self.grace.begins_in(self.held.remaining());
            if !begins_in.is_zero() {
                lease.due = now + begins_in;
            }
            self.tell_guard(Order::Begins(lease.due));
            return None;
        };
        // What this process has slept through is a part of the grace.
        let grace_ends = lease.due.min(now) + self.grace.time;
        lease.ending = Some(CommandEnding {
            loss: Loss { reason, grace_ends },
            had_ended: news.iter().any(|event| matches!(event, Event::Ended(..))),
            was_reached: false,
            killed: None,
            unended: None,
        });
        Some(Event::GraceBegins)
    }

    fn pause(&self, lease: &LeaseWatch) -> Duration {
        match &lease.ending {
            None => self.grace.pause(self.held.remaining(), self.ttl),
            Some(CommandEnding { killed: None, loss, .. }) => {
                loss.grace_ends.saturating_since(SystemClock.now()).min(*GROUP_LOOKS.start())
            }
            Some(CommandEnding { killed: Some(killed), .. }) => SystemClock
                .now()
                .saturating_since(*killed)
                .clamp(*GROUP_LOOKS.start(), *GROUP_LOOKS.end()),
        }
    }

    fn look_at_group(&self, lease: &mut LeaseWatch) -> Vec<Event> {
        let Some(ending) = &mut lease.ending else { return Vec::new() };
        let now = SystemClock.now();
        let Some(killed) = ending.killed else {
            if self.group.is_gone() {
                return vec![Event::GroupGone];
            }
            let is_over = now >= ending.loss.grace_ends;
            return is_over.then_some(Event::GraceOver).into_iter().collect();
        };
        let Some(left) = self.group.left() else { return vec![Event::GroupGone] };
        if !left.are_refused && now < killed + DEATH {
            return Vec::new();
        }
        // A lease that was renewed after all keeps others away for as long as they run.
        let is_held = self.held.is_held();
        if is_held && ending.unended.is_none() {
            let why = why_unended(&left);
            tell(format!("{left} runs on, {why}: the lock is kept until it ends"));
        }
        ending.unended = Some(left);
        if is_held { Vec::new() } else { vec![Event::Unended] }
    }

    /// Returns how the command has ended, when all is done.
    fn perform(&mut self, deed: Deed, lease: &mut LeaseWatch) -> io::Result<Option<Outcome>> {
        match deed {
            Deed::Send(signal) => self.send(signal, lease),
            Deed::GiveTerminal => self.terminal.give(),
            Deed::BeginGrace => self.tell_guard(Order::Ending),
            // A stop is carried out where the supervision waits.
            Deed::Stop => {}
            // This process takes the signal, and does not end by it.
            Deed::Interrupt(signal) => killpg(getpgrp(), signal)?,
            Deed::Finish(exit) => {
                let ending = lease.ending.take();
                // No signal has reached the command, and the lease was renewed: nothing was lost.
                let is_untouched =
                    |ending: &CommandEnding| !ending.had_ended && !ending.was_reached;
                let ending = ending.filter(|ending| !(is_untouched(ending) && self.held.is_held()));
                let lost = |CommandEnding { loss, had_ended, .. }| Outcome::Lost {
                    loss,
                    was_ended: !had_ended,
                };
                return Ok(Some(ending.map_or(Outcome::Ended(exit), lost)));
            }
            Deed::GiveUp => {
                let unended = |CommandEnding { loss, unended, .. }| {
                    Outcome::Unended(loss, unended.unwrap_or_default())
                };
                return Ok(lease.ending.take().map(unended));
            }
        }
        Ok(None)
    }

    /// Sends a signal to the command; one that is refused is told. When the lease ends, who is left is
    /// told after SIGKILL.
    fn send(&self, signal: Signal, lease: &mut LeaseWatch) {
        let is_refused = self.group.send(signal);
        if let Some(ending) = &mut lease.ending {
            // SIGCONT is refused to nobody of the same session, and ends nothing.
            ending.was_reached |= !is_refused && signal != Signal::SIGCONT;
        }
        match &mut lease.ending {
            Some(ending) if signal == Signal::SIGKILL => ending.killed = Some(SystemClock.now()),
            None if is_refused && !matches!(signal, Signal::SIGWINCH | Signal::SIGCONT) => {
                if let Some(left) = self.group.left() {
                    tell(format!(
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
        Ok(())
    }

    /// What the kernel tells of the command.
    fn news_of_command(&self) -> io::Result<Vec<Event>> {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        Ok(match waitpid(self.group.0, Some(flags)) {
            Ok(WaitStatus::Exited(_, code)) => {
                let exit = Exit::Code(u8::try_from(code).unwrap_or(u8::MAX));
                vec![Event::Ended(exit, self.terminal.place())]
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                vec![Event::Ended(Exit::Killed(signal), self.terminal.place())]
            }
            Ok(WaitStatus::Stopped(_, signal)) => {
                vec![Event::Stopped(signal, self.terminal.place())]
            }
            // It was reaped before, and only what it left behind is waited for.
            Ok(_) | Err(Errno::ECHILD | Errno::EINTR) => Vec::new(),
            Err(error) => return Err(error.into()),
        })
    }

    /// If the guard was killed, and the system has no room for another one, the command goes on
    /// without: the next message tries again.
    fn tell_guard(&mut self, order: Order) {
        let _ = self.guard.tell(order);
    }
}

/// Why processes run on after SIGKILL, behind their names.
pub(super) fn why_unended(left: &Members) -> &'static str {
    if left.are_refused {
        "and this user may not end it"
    } else {
        "and has not ended after SIGKILL"
    }
}

/// What is known of the lease.
struct LeaseWatch {
    /// `None` once it has resolved.
    lost: Option<Pin<Box<dyn Future<Output = String>>>>,
    /// How it was lost, once it is known.
    end: Option<String>,
    /// When the grace begins, unless the lease is renewed.
    due: Instant,
    /// `None` until the grace begins.
    ending: Option<CommandEnding>,
}

/// The end of a command whose lease ends.
struct CommandEnding {
    loss: Loss,
    /// Whether the command had ended before this process could tell it to.
    had_ended: bool,
    /// Whether a signal that may end it has reached the command since.
    was_reached: bool,
    /// When it got SIGKILL.
    killed: Option<Instant>,
    /// What could not be ended, when it was looked for last.
    unended: Option<Members>,
}

impl LeaseWatch {
    /// Learns whether it was lost.
    async fn look(&mut self) {
        select! {
            biased;
            () = self.ended() => {}
            () = ready(()) => {}
        }
    }

    /// Resolves once, and learns how it was lost.
    async fn ended(&mut self) {
        let Some(lost) = &mut self.lost else { return pending().await };
        self.end = Some(lost.await);
        self.lost = None;
    }
}
