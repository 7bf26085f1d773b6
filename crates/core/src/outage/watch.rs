use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    command::Subject,
    journal::Journal,
    line::{AtStake, Line, LostLease},
    silence::{Outage, Silence},
};
use crate::{
    clock::{Clock, Instant},
    store::StoreError,
    types::{FenceToken, LockName},
};

/// What one runtime knows about outages of its server, fed with every command that it sends.
#[derive(Debug)]
pub struct OutageWatch {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    silence: Silence,
    journal: Journal,
}

impl OutageWatch {
    /// Nothing was sent yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// How long the server has been out of reach at `now`; zero when it is not.
    pub fn unreachable_for(&self, now: Instant) -> Duration {
        self.state().silence.unreachable_for(now)
    }

    /// The present outage, if there is one.
    pub fn outage(&self) -> Option<Outage> {
        self.state().silence.outage()
    }

    /// When the present silence began; `None` when every command was answered.
    pub fn silent_since(&self) -> Option<Instant> {
        self.state().silence.since()
    }

    /// Whether the server has answered any command at `at` or later.
    pub fn heard_since(&self, at: Instant) -> bool {
        self.state().silence.heard_since(at)
    }

    /// When the server answered any command last.
    pub fn heard_at(&self) -> Option<Instant> {
        self.state().silence.heard_at()
    }

    /// Whether the server was asked since `at`, and has not answered anything.
    pub fn has_been_silent_since(&self, at: Instant) -> bool {
        self.state().silence.has_been_silent_since(at)
    }

    /// Whether the server is out of reach, and no command in flight could show that it is back.
    pub fn needs_probe(&self) -> bool {
        self.state().silence.needs_probe()
    }

    /// A command is sent.
    pub(super) fn sent<'a>(&'a self, subject: Subject<'a>) -> InFlight<'a> {
        let sent_at = self.clock.now();
        self.state().silence.sent(sent_at);
        InFlight { watch: self, subject, sent_at, open: true }
    }

    /// A lease was lost at `now`.
    pub fn lost(&self, now: Instant, lease: LostLease<'_>) {
        let LostLease { lock, lease: id, fence, reason, .. } = lease;
        let line = self.state().journal.lost(now, lease);
        if let Some(line) = line {
            line.write();
        } else {
            tracing::debug!(%lock, lease = %id, %fence, "lease lost: {reason}");
        }
    }

    /// A grant showed at `now` that the fence counter of a lock had lost data.
    pub fn regressed(&self, now: Instant, lock: &LockName, fence: FenceToken) {
        let line = self.state().journal.regressed(now, lock, fence);
        line.iter().for_each(Line::write);
    }

    /// Logs what has happened since the last call; call it every few seconds, and at the end.
    pub fn tick(&self, now: Instant, at_stake: impl FnOnce() -> AtStake) {
        // Called outside of the lock, and only if a line is written.
        let has_news = self.state().journal.has_news();
        let at_stake = if has_news { at_stake() } else { AtStake::default() };
        let lines = {
            let State { silence, journal } = &mut *self.state();
            let outage = silence.outage().map(|outage| now.saturating_since(outage.since));
            journal.tick(now, outage, at_stake)
        };
        lines.iter().for_each(Line::write);
    }

    /// A command failed without an answer, or with an error that the server told.
    fn failed(&self, subject: Subject<'_>, sent_at: Instant, error: &StoreError) {
        let now = self.clock.now();
        let Subject { command, lock, lease, fence } = subject;
        let ([reached, failed], is_logged) = {
            let State { silence, journal } = &mut *self.state();
            let reached = if error.is_sign_of_life() {
                silence.answered(now).map(|outage| now.saturating_since(outage.since))
            } else {
                silence.unanswered(sent_at, error.clone());
                None
            };
            let reached = reached.and_then(|after| journal.reached(now, after));
            let failed = journal.failed(now, sent_at, subject, error);
            let is_logged = failed.is_some();
            ([reached, failed], is_logged)
        };
        reached.iter().chain(&failed).for_each(Line::write);
        if !is_logged {
            tracing::debug!(
                command = command.as_label(),
                lock = lock.map(tracing::field::display),
                lease = lease.map(tracing::field::display),
                fence = fence.map(tracing::field::display),
                %error,
                "a command failed"
            );
        }
    }

    /// A command was answered.
    fn answered(&self) {
        let now = self.clock.now();
        let line = {
            let State { silence, journal } = &mut *self.state();
            let ended = silence.answered(now);
            journal.succeeded();
            ended.and_then(|outage| journal.reached(now, now.saturating_since(outage.since)))
        };
        line.iter().for_each(Line::write);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command without an answer yet; dropped in this state, it counts as given up.
#[derive(Debug)]
pub(super) struct InFlight<'a> {
    watch: &'a OutageWatch,
    subject: Subject<'a>,
    sent_at: Instant,
    open: bool,
}

impl InFlight<'_> {
    /// The server did what the command says.
    pub(super) fn answered(mut self) {
        self.open = false;
        self.watch.answered();
    }

    /// The command failed: the server said so, or said nothing.
    pub(super) fn failed(mut self, error: &StoreError) {
        self.open = false;
        self.watch.failed(self.subject, self.sent_at, error);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.open {
            let now = self.watch.clock.now();
            self.watch.state().silence.given_up(now);
        }
    }
}
