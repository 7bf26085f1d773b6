use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    command::Subject,
    silence::{Outage, Silence},
};
use crate::{
    clock::{Clock, Instant},
    store::StoreError,
};

/// What one runtime knows of its server's outages; all that it sends is told here.
#[derive(Debug)]
pub struct OutageWatch {
    clock: Arc<dyn Clock>,
    silence: Mutex<Silence>,
}

impl OutageWatch {
    /// Nothing was sent yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, silence: Mutex::default() }
    }

    /// How long the server has been out of reach at `now`; zero when it is not.
    pub fn unreachable_for(&self, now: Instant) -> Duration {
        self.silence().unreachable_for(now)
    }

    /// The present outage, if there is one.
    pub fn outage(&self) -> Option<Outage> {
        self.silence().outage()
    }

    /// When the first command was sent that has no answer yet, nor any sent after it; `None` when
    /// there is none.
    pub fn silent_since(&self) -> Option<Instant> {
        self.silence().since()
    }

    /// Whether the server has answered any command at `at` or later.
    pub fn heard_since(&self, at: Instant) -> bool {
        self.silence().heard_since(at)
    }

    /// Whether the server is out of reach, and nothing is on its way that would tell when it is
    /// back.
    pub fn needs_probe(&self) -> bool {
        self.silence().needs_probe()
    }

    /// A command is sent.
    pub(super) fn sent<'a>(&'a self, subject: Subject<'a>) -> OnItsWay<'a> {
        self.silence().sent(self.clock.now());
        OnItsWay { watch: self, subject, open: true }
    }

    fn silence(&self) -> MutexGuard<'_, Silence> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command on its way; dropped before it was answered or failed, it counts as given up.
#[derive(Debug)]
pub(super) struct OnItsWay<'a> {
    watch: &'a OutageWatch,
    subject: Subject<'a>,
    open: bool,
}

impl OnItsWay<'_> {
    /// The server did what the command says.
    pub(super) fn answered(mut self) {
        self.open = false;
        self.watch.silence().answered(self.watch.clock.now());
    }

    /// The command failed: the server said so, or said nothing.
    pub(super) fn failed(mut self, error: &StoreError) {
        self.open = false;
        let Subject { command, lock, lease, fence } = self.subject;
        tracing::debug!(
            command = command.as_label(),
            lock = lock.map(tracing::field::display),
            lease = lease.map(tracing::field::display),
            fence = fence.map(tracing::field::display),
            %error,
            "a command failed"
        );
        let now = self.watch.clock.now();
        let mut silence = self.watch.silence();
        if error.is_answer() {
            silence.answered(now);
        } else {
            silence.unanswered(now, error.clone());
        }
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if self.open {
            self.watch.silence().forgotten();
        }
    }
}
