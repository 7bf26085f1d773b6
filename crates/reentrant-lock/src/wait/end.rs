use std::time::Duration;

use leasehold_core::{
    Instant, LockName, STOOD_STILL, StoreError, StoreErrorKind, store::Inspection,
};
use tokio::select;

use crate::{
    durations::{LAST_LOOK, MOMENT},
    engine::Engine,
    error::{AcquireError, HolderInfo, Unavailable, WaitTimeout},
    queue::{Failing, NameState, unheard},
};

use super::line::{AcquireCall, InLine, WaitLimit};

/// For how many round trips a server is silent that is not just slow; a look may have to connect.
const ROUND_TRIPS: u32 = 8;

impl AcquireCall {
    /// The runtime gives no new leases.
    pub(super) fn closed(&self) -> AcquireError {
        if self.engine.is_forked() {
            return self.forked();
        }
        if self.engine.ending.refuses() {
            let (lock, draining) = (self.name.clone(), self.engine.ending.is_draining());
            return AcquireError::ShutDown { lock, draining };
        }
        // No task is left that would renew a lease.
        let stopped = StoreError::new(
            StoreErrorKind::Config,
            "the task that renews leases has ended: the tokio runtime that the lock runtime lives on has stopped, or a \
             subscriber or recorder of the process has panicked",
            "make it on a tokio runtime that lives as long as the locks, or use own_thread(); let no subscriber panic",
        );
        stopped.for_lock(&self.name).into()
    }

    /// The runtime was made in another process.
    pub(super) fn forked(&self) -> AcquireError {
        self.engine.outages().origin().error().for_lock(&self.name).into()
    }

    /// The error of a call whose time was over before it sent a command, or sent another.
    pub(super) async fn too_late(&self) -> AcquireError {
        if self.tries {
            // Its process was not scheduled, so whether the lock is taken is unknown.
            let unasked = StoreError::new(
                StoreErrorKind::Definite,
                "the time of the call was over before it could ask the server",
                "try again; look for blocking code on the executor of the call",
            );
            return failed(&self.engine, &self.name, self.started, unasked);
        }
        if let Some(error) = self.stood_still() {
            return error;
        }
        if self.is_silent_throughout() {
            return unavailable(&self.engine, &self.name, self.started, None);
        }
        self.timeout(None).await
    }

    /// The error of a wait that was polled long after its end, and knows nobody who has the lock: the news may
    /// be there, and were not looked at in time.
    pub(super) fn stood_still(&self) -> Option<AcquireError> {
        let WaitLimit::For(wait) = self.limit else { return None };
        let late = not_yet().by(self.started + wait, self.engine.clock.now());
        let is_ours = late.is_ours() && !self.knows(NameState::is_known_held);
        is_ours.then(|| failed(&self.engine, &self.name, self.started, late))
    }

    /// Whether a wait saw no answer at all, and the lock is not known to be held. What the server
    /// said of other processes counts until a command fails.
    pub(super) fn is_silent_throughout(&self) -> bool {
        let silence = self.engine.outages().state();
        if self.tries || silence.heard_since(self.started) || self.is_held_here() {
            return false;
        }
        let is_unknown = silence.has_been_silent_since(self.started)
            && !self.knows(NameState::is_held_elsewhere);
        silence.outage().is_some() || is_unknown
    }

    /// Whether this process itself has the lock, or keeps it closed.
    pub(super) fn is_held_here(&self) -> bool {
        let now = self.engine.clock.now();
        self.knows(|state| state.is_held_here(now))
    }

    pub(super) fn knows(&self, look: impl FnOnce(&NameState) -> bool) -> bool {
        self.look(look).unwrap_or(false)
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&NameState) -> T) -> Option<T> {
        self.engine.look(&self.name, self.terms.mode, look)
    }

    pub(super) fn unheard(&self) -> AcquireError {
        let error = StoreError::new(
            StoreErrorKind::Indeterminate,
            unheard().what().to_owned(),
            "check server and network; a server that is slow needs a longer command_timeout()",
        );
        failed(&self.engine, &self.name, self.started, error)
    }

    /// The error of a try that stands behind others of its process, if they ask in vain.
    pub(super) fn asked_in_vain(&self) -> Option<AcquireError> {
        let failing = self.failing().filter(|failing| failing.failed > 0);
        let is_outage = self.engine.outages().state().outage().is_some();
        let in_vain = (is_outage || failing.is_some()) && !self.is_held_here();
        in_vain.then(|| unavailable(&self.engine, &self.name, self.started, failing))
    }

    /// Why it is not known whether others hold the lock.
    pub(super) fn failing(&self) -> Option<Failing> {
        let failing = self.look(|state| state.failing(self.started)).flatten()?;
        let is_of_others = failing.error.is_unacknowledged() && !self.terms.acks.are_asked();
        Some(if is_of_others { Failing { error: stands_behind(), ..failing } } else { failing })
    }

    /// The error of a call whose time is over.
    // ADR 0014
    pub(super) async fn timeout(&self, in_line: Option<InLine<'_>>) -> AcquireError {
        let (engine, tries) = (&self.engine, self.tries);
        let waited = engine.clock.now().saturating_since(self.started);
        let position = in_line.as_ref().and_then(|in_line| in_line.look(NameState::position));
        let heard = self.look(NameState::heard).flatten();
        let round_trip = self.look(NameState::round_trip).unwrap_or_default();
        let too_few = self.look(|state| state.too_few(self.started)).flatten();
        let too_few = too_few.filter(|_| !tries && self.terms.acks.are_asked());
        // While a try waits for a recall, the last word is that the lock is taken.
        let failing = self.failing().filter(|_| !tries && self.recall_ends.is_none());
        let is_outage = engine.outages().state().outage().is_some();
        let failing = failing.map(|last| match &too_few {
            // One lost answer says less than what the server has said.
            Some(said) if !last.error.is_answer() && !is_outage => said.clone(),
            _ => last,
        });
        // The call gives its place up before it finds out who has the lock.
        drop(in_line);
        if failing.is_some() {
            return unavailable(engine, &self.name, self.started, failing);
        }
        let may_wait = self.longest_wait_for_replicas();
        let is_acknowledged =
            |holder: Option<&HolderInfo>| holder.is_some_and(|one| one.is_acknowledged(may_wait));
        let holder = match self.limit {
            WaitLimit::Try => Ok(None),
            _ => self.holder(round_trip).await,
        };
        match holder {
            Err(failing) => unavailable(engine, &self.name, self.started, failing),
            Ok(holder) if too_few.is_some() && !is_acknowledged(holder.as_ref()) => {
                unavailable(engine, &self.name, self.started, too_few)
            }
            Ok(holder) => AcquireError::Timeout(Box::new(WaitTimeout {
                lock: self.name.clone(),
                waited,
                position: position.filter(|_| !tries),
                holder: holder.map(|holder| holder.heard(heard, engine.clock.now())),
                self_wait: None,
                cycle: None,
            })),
        }
    }

    /// For how long another process may have a lock before it takes it back, because too few replicas
    /// have it. It is taken to wait as long as this one would.
    fn longest_wait_for_replicas(&self) -> Duration {
        let terms = &self.terms;
        let command = self.engine.timing.command_deadline(terms.ttl);
        (terms.acks.timeout().min(command) + MOMENT) * 2
    }

    /// Who has the lock, as the server says; in an outage, as this process knows.
    ///
    /// # Errors
    ///
    /// The server refuses to say, or has fallen silent, with the failure of the look: it has
    /// answered nothing since the look began, and nothing for many times `round_trip`.
    async fn holder(&self, round_trip: Duration) -> Result<Option<HolderInfo>, Option<Failing>> {
        let engine = &self.engine;
        let (since, label) = (engine.clock.now(), engine.label.to_string());
        let is_held_here = self.is_held_here();
        let here = engine.holder(&self.name);
        let here = here.map(|(lease, _)| HolderInfo {
            lease: lease.turn().id(),
            fence: lease.turn().first(),
            ..HolderInfo::of_lease(&lease, label, since)
        });
        if here.is_some() && engine.outages().state().outage().is_some() {
            return Ok(here);
        }
        // A server that takes longer than the look is slow, and has not failed.
        let deadline = since + engine.timing.command_timeout;
        let failure = select! {
            biased;
            seen = engine.inspect_until(&self.name, since, deadline) => match seen {
                Ok(seen) => return Ok(holder_in(engine, seen).or(here)),
                Err(error) => Some(error),
            },
            () = engine.clock.sleep_until(since + LAST_LOOK) => None,
        };
        if is_held_here {
            return Ok(here);
        }
        let (now, silence) = (engine.clock.now(), engine.outages().state());
        let is_silent = !silence.heard_since(since);
        match failure {
            Some(error) if error.kind().is_transient() && (is_silent || error.is_answer()) => {
                Err(Some(Failing::once(since, error)))
            }
            None if is_silent
                && now < since + STOOD_STILL
                && silence
                    .silent_since()
                    .is_some_and(|at| now >= at + round_trip * ROUND_TRIPS) =>
            {
                Err(None)
            }
            _ => Ok(None),
        }
    }
}

/// The error of a call when the server did not answer, or refused; `failing` says how the commands
/// about its lock failed.
pub(crate) fn unavailable(
    engine: &Engine,
    lock: &LockName,
    started: Instant,
    failing: Option<Failing>,
) -> AcquireError {
    let (now, silence) = (engine.clock.now(), engine.outages().state());
    let outage = silence.outage();
    let heard_since = |failing: &Failing| silence.heard_since(failing.since);
    // Without an outage, the commands about this lock alone have failed.
    let answers_others = outage.is_none() && failing.as_ref().is_some_and(heard_since);
    let (since, failed) = match (outage, &failing) {
        // On a Cluster, others may have answered before the outage: the node of this lock did not.
        (Some(outage), Some(Failing { silent_since: Some(since), failed, .. })) => {
            (outage.since.min(*since), outage.unanswered.max((*failed).into()))
        }
        (Some(outage), _) => (outage.since, outage.unanswered),
        (None, Some(failing)) if answers_others => (failing.since, failing.failed.into()),
        // What was sent is still on its way.
        (None, _) => (silence.silent_since().unwrap_or(started), 0),
    };
    let last_error = || outage.map(|outage| outage.last_error.clone());
    let error = failing.map(|failing| failing.error).or_else(last_error);
    AcquireError::Unavailable(Box::new(Unavailable {
        lock: lock.clone(),
        waited: now.saturating_since(started),
        silent_for: now.saturating_since(since),
        answers_others,
        failed,
        error: error.unwrap_or_else(not_yet).for_no_lock(),
    }))
}

/// The error of a call whose own command failed.
pub(crate) fn failed(
    engine: &Engine,
    lock: &LockName,
    started: Instant,
    error: StoreError,
) -> AcquireError {
    if !error.kind().is_transient() {
        return error.for_lock(lock).into();
    }
    unavailable(engine, lock, started, Some(Failing::once(started, error)))
}

/// Who holds a lock, as the server has it.
pub(super) fn holder_in(engine: &Engine, inspection: Inspection) -> Option<HolderInfo> {
    match inspection {
        Inspection::Held(record) => Some(HolderInfo {
            this_runtime: record.id.runtime() == engine.runtime_id(),
            label: record.label,
            lease: record.id,
            fence: record.fence,
            held_for: record.held_for,
            remaining: record.remaining,
            kept: record.kept,
            unrenewed_for: None,
        }),
        Inspection::Free { .. } => None,
    }
}

/// A call that needs no replica waits for one of its process that does.
fn stands_behind() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "a task of this process that stands before this call waits for replicas, and too few acknowledge",
        "check the replicas and their lag, or give calls that need none a lock runtime of their own",
    )
    .as_answer()
}

/// Nothing was heard, and nothing has failed so far.
fn not_yet() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "nothing that was sent has been answered yet",
        "check server and network; where both are well, give the call more time than a slow answer takes",
    )
}
