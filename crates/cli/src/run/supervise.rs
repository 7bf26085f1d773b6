use std::{
    future::{Future, pending},
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
    unistd::{Pid, getpgrp, getpid},
};
use tokio::select;

use super::{
    guard_rules::Order,
    held::Held,
    helper::Guard,
    rules::{Deed, Event, Exit, Supervision},
    signals::Signals,
    terminal::Terminal,
};

/// How soon the end of a group is noticed that was told to end.
const LOOK: Duration = Duration::from_millis(20);

/// A command that runs under a lease.
pub(super) struct Job<'a> {
    pub(super) command: Pid,
    pub(super) held: &'a Held,
    pub(super) guard: &'a mut Guard,
    pub(super) signals: &'a mut Signals,
    pub(super) terminal: &'a Terminal,
    pub(super) grace: Duration,
    pub(super) ttl: Duration,
}

/// How a command has ended, and why its lease was lost before, if it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) exit: Exit,
    pub(super) lost: Option<String>,
}

/// What wakes the supervision up.
#[derive(Debug)]
enum Woken {
    By(Signal),
    Lost(String),
    Clock,
}

impl Job<'_> {
    /// Returns when the command has ended; after a loss, when its process group has.
    pub(super) async fn supervise(mut self) -> io::Result<Outcome> {
        let mut lease =
            Lease { lost: Some(Box::pin(self.held.lost())), reason: None, grace_ends: None };
        let mut state = Supervision::default();
        loop {
            // Its end may have come before its signal was taken.
            let mut events = self.news_of_command()?;
            let pause = if lease.grace_ends.is_some() { LOOK } else { self.ttl / 8 };
            if events.is_empty() {
                let next = select! {
                    biased;
                    signal = self.signals.next() => Woken::By(signal),
                    end = lease.ended() => Woken::Lost(end),
                    () = SystemClock.sleep_until(SystemClock.now() + pause) => Woken::Clock,
                };
                events = self.events_of(next, &mut lease);
            }
            for event in events {
                for deed in state.on(event) {
                    if let Some(exit) = self.perform(deed, &mut lease, &mut state)? {
                        self.terminal.take();
                        return Ok(Outcome { exit, lost: lease.reason });
                    }
                }
            }
        }
    }

    fn events_of(&mut self, woken: Woken, lease: &mut Lease) -> Vec<Event> {
        match woken {
            Woken::By(Signal::SIGCHLD) => Vec::new(),
            Woken::By(signal) => vec![Event::Told(signal)],
            Woken::Lost(end) => {
                lease.reason = Some(end);
                vec![Event::Lost]
            }
            Woken::Clock => match lease.grace_ends {
                None => {
                    self.tell_guard(Order::Left(self.held.remaining()));
                    Vec::new()
                }
                Some(_) if self.group_is_gone() => vec![Event::GroupGone],
                Some(ends) if SystemClock.now() >= ends => vec![Event::GraceOver],
                Some(_) => Vec::new(),
            },
        }
    }

    /// Returns how the command has ended, when all is done.
    fn perform(
        &mut self,
        deed: Deed,
        lease: &mut Lease,
        state: &mut Supervision,
    ) -> io::Result<Option<Exit>> {
        match deed {
            // It has ended meanwhile.
            Deed::Send(signal) => drop(killpg(self.command, signal)),
            Deed::GiveTerminal => self.terminal.give(),
            Deed::BeginGrace => {
                lease.grace_ends = Some(SystemClock.now() + self.grace);
                self.tell_guard(Order::Lost);
            }
            Deed::Stop => {
                self.stop()?;
                for deed in state.on(Event::Resumed) {
                    self.perform(deed, lease, state)?;
                }
            }
            // This process takes the signal, and does not end by it.
            Deed::Interrupt(signal) => killpg(getpgrp(), signal)?,
            Deed::Finish(exit) => return Ok(Some(exit)),
        }
        Ok(None)
    }

    /// Stops all processes of this job, as the keys of the terminal would; returns when this one goes
    /// on.
    fn stop(&mut self) -> io::Result<()> {
        killpg(getpgrp(), Signal::SIGTSTP)?;
        // This process takes that signal, and does not stop by it.
        kill(getpid(), Signal::SIGSTOP)?;
        self.signals.forget(Signal::SIGTSTP);
        Ok(())
    }

    /// What the kernel tells of the command.
    fn news_of_command(&self) -> io::Result<Vec<Event>> {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        Ok(match waitpid(self.command, Some(flags)) {
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

    fn group_is_gone(&self) -> bool {
        killpg(self.command, None) == Err(Errno::ESRCH)
    }
}

/// What is known of the lease.
struct Lease {
    /// `None` once it has resolved.
    lost: Option<Pin<Box<dyn Future<Output = String>>>>,
    /// Why it was lost.
    reason: Option<String>,
    grace_ends: Option<Instant>,
}

impl Lease {
    /// Resolves once.
    async fn ended(&mut self) -> String {
        let Some(lost) = &mut self.lost else { return pending().await };
        let end = lost.await;
        self.lost = None;
        end
    }
}
