use std::time::Duration;

use leasehold_core::{Instant, LockName, StoreError, StoreErrorKind, outage::Outage};

use crate::{
    cohort::{Cohort, unheard},
    engine::{Engine, InLine},
    error::{AcquireError, HolderInfo, Unavailable, WaitTimeout},
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
            // Nothing was sent, so whether the lock is taken is unknown.
            return self.engine.failed(&self.name, started, unasked());
        }
        if self.is_silent_throughout(started) {
            return self.engine.unavailable(&self.name, started, None);
        }
        self.timeout(started, None).await
    }

    /// Whether a wait saw no answer of the server at all, and the lock is not known to be held.
    ///
    /// A lock that a task of this process holds is held, whatever the server says. What the server
    /// said of other processes counts until a command fails.
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
                let seen = in_line.look(|cohort, ticket| {
                    (cohort.position(ticket), cohort.last_error().map(StoreError::for_no_lock))
                });
                seen.map_or((None, None), |(position, error)| (Some(position), error))
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

impl Engine {
    /// What a call that began at `started` ends with when the server did not answer; `error` is
    /// what its own command met, if it sent one.
    pub(crate) fn unavailable(
        &self,
        lock: &LockName,
        started: Instant,
        error: Option<StoreError>,
    ) -> AcquireError {
        let now = self.clock.now();
        let silence = self.outages().silence();
        let outage = silence.outage();
        let heard_at = silence.heard_at().filter(|heard_at| *heard_at >= started);
        // Without an outage, the command of this call alone has failed.
        let answers_others = outage.is_none() && error.is_some() && heard_at.is_some();
        let (since, failed, last_error) = match (outage, heard_at) {
            (Some(Outage { since, unanswered, last_error, .. }), _) => {
                (since, unanswered, last_error)
            }
            (None, Some(heard_at)) if answers_others => (heard_at, 1, None),
            // What was sent is still on its way.
            (None, _) => (silence.silent_since().unwrap_or(started), 0, None),
        };
        let error = error.or(last_error).unwrap_or_else(not_yet).for_no_lock();
        AcquireError::Unavailable(Box::new(Unavailable {
            lock: lock.clone(),
            waited: now.saturating_since(started),
            silent_for: now.saturating_since(since),
            answers_others,
            failed,
            error,
        }))
    }

    /// What a call that sends one command ends with when that failed.
    pub(crate) fn failed(
        &self,
        lock: &LockName,
        started: Instant,
        error: StoreError,
    ) -> AcquireError {
        if error.is_answer() || !error.kind().is_transient() {
            return error.for_lock(lock).into();
        }
        self.unavailable(lock, started, Some(error))
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

/// Nothing was heard, and nothing has failed so far.
fn not_yet() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "nothing that was sent has been answered yet",
        "check server and network; where both are well, give the call more time than a slow answer takes",
    )
}
