use std::time::Duration;

use leasehold_core::{Instant, StoreError, StoreErrorKind};

use crate::{
    cohort::{Cohort, unheard},
    engine::InLine,
    error::{AcquireError, HolderInfo, QueuePosition, WaitTimeout},
};

use super::{Patience, Wait};

/// A timeout is not held up for long by finding out who holds the lock.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

impl Wait {
    /// Whether it is too late to go on waiting.
    pub(super) fn is_over(&self, ends: Option<Instant>) -> bool {
        ends.is_some_and(|at| at <= self.engine.clock.now())
    }

    /// What a call ends with whose time was over before it could ask, or ask once more.
    pub(super) async fn too_late(&self, started: Instant) -> AcquireError {
        if self.request.tries {
            // Nothing was asked, so nobody knows whether the lock is taken.
            return self.engine.failed(&self.name, started, unasked());
        }
        if self.is_silent_throughout(started) {
            return self.engine.unavailable(&self.name, started, None);
        }
        self.timeout(started, None).await
    }

    /// Whether a wait saw no answer of the server at all, and the lock is not known to be held.
    ///
    /// A lock that a task of this process holds is held, whatever the server says. What the server said
    /// of other processes counts until a command fails.
    pub(super) fn is_silent_throughout(&self, started: Instant) -> bool {
        let silence = self.engine.outages().silence();
        if self.request.tries || silence.heard_since(started) || self.is_held_here() {
            return false;
        }
        let is_unknown =
            silence.has_been_silent_since(started) && !self.knows(Cohort::is_held_elsewhere);
        silence.outage().is_some() || is_unknown
    }

    /// Whether this process itself has the lock, or keeps it closed.
    pub(super) fn is_held_here(&self) -> bool {
        let now = self.engine.clock.now();
        self.knows(|cohort| cohort.is_held_here(now))
    }

    /// Whether something is known of the lock.
    pub(super) fn knows(&self, look: impl FnOnce(&Cohort) -> bool) -> bool {
        self.engine.look(&self.name, look).unwrap_or(false)
    }

    /// A call that only tries was not answered in time.
    pub(super) fn unheard(&self, started: Instant) -> AcquireError {
        self.engine.failed(&self.name, started, unheard_by_a_try())
    }

    pub(super) async fn timeout(&self, started: Instant, in_line: Option<InLine>) -> AcquireError {
        let waited = self.engine.clock.now().saturating_since(started);
        let (position, last_error) = match &in_line {
            Some(in_line) if !self.request.tries => {
                let (tasks, runtimes) = in_line.position();
                let last_error = in_line.last_error().map(StoreError::for_no_lock);
                (Some(QueuePosition { runtimes, tasks }), last_error)
            }
            _ => (None, None),
        };
        // The call gives its place up before it finds out who has the lock.
        drop(in_line);
        let holder = match (self.patience, &last_error) {
            (Patience::Try, _) | (_, Some(_)) => None,
            _ => self.holder().await,
        };
        let lock = self.name.clone();
        AcquireError::Timeout(Box::new(WaitTimeout {
            lock,
            waited,
            position,
            holder,
            last_error,
            self_wait: None,
        }))
    }

    /// Who has the lock, as the server says; in an outage, as this process knows.
    async fn holder(&self) -> Option<HolderInfo> {
        let engine = &self.engine;
        let (now, label) = (engine.clock.now(), engine.label.to_string());
        let here = engine.held_here(&self.name);
        let here = here.map(|lease| HolderInfo::of_turn(&lease, label, now));
        if here.is_some() && engine.outages().silence().outage().is_some() {
            return here;
        }
        let seen = engine.holder_on_server(&self.name, LONGEST_LOOK).await;
        seen.or(here)
    }
}

/// The answer to a try did not come within its time.
fn unheard_by_a_try() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        unheard().what().to_owned(),
        "check server and network; a server that is slow needs a longer command_timeout()",
    )
}

/// The time of a call was over before it could ask: its process was not scheduled.
fn unasked() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "the time of the call was over before it could ask the server",
        "try again; look for blocking code on the executor of the call",
    )
}
