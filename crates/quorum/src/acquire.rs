use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use leasehold_core::{
    AcquisitionId, Clock, Instant, LockName, Mode, Replication, StoreError, backoff,
    store::{Acquire, AcquireAnswer, Granted, Heartbeats, Place, Push, Waiter},
};

use super::{
    claims::{Candidate, Claim, ClaimGuard},
    failure::{no_readers, still_tried},
    node::{NodeCommand, QuorumNode, Word},
    pushes::publish,
    round::{Round, round},
    state::Quorum,
    tally::Refusal,
    vote::{VoteOutcome, vote},
};
use crate::durations::STEPS_BACK;

/// How many times at most one call asks the nodes, if others ask at the same time.
const TRIES: u32 = 4;

/// Asks for a lock. A lease that this call gets lives for `life`. With `one_first`, one node is asked before the
/// others, so that callers do not split the nodes between them.
pub(super) async fn acquire<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    command: Acquire,
    life: Duration,
    one_first: bool,
    deadline: Instant,
) -> Result<AcquireAnswer, StoreError> {
    quorum.check(command.ttl, command.acks)?;
    if command.mode == Mode::Read {
        return Err(no_readers());
    }
    let claim = quorum.claims.enter(command.id);
    let candidate = Candidate { command, life };
    let turn = claim.turn(&*quorum.clock, deadline).await;
    let outcome = if turn.is_some() {
        let Acquire { ref name, id, .. } = candidate.command;
        match confirm(quorum, name, id, deadline).await? {
            Some(granted) => return Ok(AcquireAnswer::Granted(granted)),
            None => match ask(quorum, &claim, &candidate, one_first, deadline).await {
                Err(error) if candidate.waits() && error.kind().is_transient() => {
                    // Its age counts on: a node may remember it.
                    wait(quorum, &claim, candidate);
                    return Err(error);
                }
                outcome => outcome?,
            },
        }
    } else if candidate.waits() {
        VoteOutcome::Refused(Refusal::soon())
    } else {
        return Err(still_tried());
    };
    Ok(match outcome {
        VoteOutcome::Granted(granted) => {
            claim.stop_waiting();
            AcquireAnswer::Granted(granted)
        }
        VoteOutcome::Withdrawn => AcquireAnswer::Withdrawn,
        VoteOutcome::Refused(refusal) | VoteOutcome::Split(refusal) => {
            let Refusal { remaining, keeps, older } = refusal;
            if candidate.waits() {
                wait(quorum, &claim, candidate);
                AcquireAnswer::Queued(Place { remaining, ahead: older })
            } else {
                AcquireAnswer::Busy { remaining, keeps }
            }
        }
    })
}

/// Repeats the acquire of each waiter, all at the same time.
pub(super) async fn heartbeat<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Heartbeats { batch, label }: Heartbeats,
    deadline: Instant,
) -> Vec<Result<AcquireAnswer, StoreError>> {
    let beat = async |waiter: &Waiter| {
        let Waiter { ref name, id, mode, ttl, watermark, keeps, heartbeat } = *waiter;
        let (wait, acks) = (Some(heartbeat), Replication::NONE);
        let (name, label) = (name.clone(), label.clone());
        let command = Acquire { name, id, mode, ttl, watermark, label, keeps, wait, acks };
        let answer = acquire(quorum, command, heartbeat.window(ttl), true, deadline).await;
        answer.map_err(|error| error.for_lock(&waiter.name))
    };
    join_all(batch.iter().map(beat)).await
}

/// If this acquisition was granted before, and a majority still has the lease, returns that grant.
async fn confirm<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    name: &LockName,
    id: AcquisitionId,
    deadline: Instant,
) -> Result<Option<Granted>, StoreError> {
    let record = quorum.records.lock().get(id).cloned();
    let Some(record) = record.filter(|record| record.name == *name && !record.is_ending) else {
        return Ok(None);
    };
    let word = Word::Settle { attempt: record.attempt, fence: record.last.get() };
    let command = NodeCommand { name: name.clone(), id, word };
    let mut round =
        round(quorum, record.asked, |_| command.clone(), deadline, Round::is_done).await;
    if round.is_done() {
        let (first, last, remaining) = (record.first, record.last, round.remaining());
        let (contended, regressed) = (round.contended, false);
        return Ok(Some(Granted { first, last, remaining, contended, regressed }));
    }
    if !round.is_gone() {
        return Err(round.too_few());
    }
    let mut records = quorum.records.lock();
    if records.get(id).is_some_and(|known| known.attempt == record.attempt) {
        records.remove(id);
    }
    Ok(None)
}

/// Asks the nodes until a majority has decided: up to `TRIES` times, and not after the deadline or the end of the
/// claim. The caller holds the claim's turn, so no other call asks for this acquisition meanwhile.
async fn ask<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    claim: &Claim,
    candidate: &Candidate,
    mut one_first: bool,
    deadline: Instant,
) -> Result<VoteOutcome, StoreError> {
    let mut steps = 0;
    loop {
        if claim.is_over() {
            return Ok(VoteOutcome::Withdrawn);
        }
        let outcome = vote(quorum, claim, candidate, one_first, deadline).await?;
        let VoteOutcome::Split(refusal) = outcome else { return Ok(outcome) };
        // The more acquisitions wait before this one, the longer it pauses: those ask first.
        let behind = u32::try_from(refusal.older.min(3)).unwrap_or(3);
        let pause = backoff(STEPS_BACK, steps + behind, quorum.entropy.fraction());
        let until = quorum.clock.now() + pause;
        steps += 1;
        if steps == TRIES || until >= deadline {
            return Ok(VoteOutcome::Refused(refusal));
        }
        claim.called(&*quorum.clock, until).await;
        one_first = true;
    }
}

/// Remembers that an acquisition waits, and asks for it when a node calls it.
fn wait<N: QuorumNode>(quorum: &Arc<Quorum<N>>, claim: &Claim, candidate: Candidate) {
    let id = candidate.command.id;
    // Another try of it has the lock: this answer is old.
    if quorum.records.lock().get(id).is_some() {
        return;
    }
    // A grant that follows a message lives for the claim window only.
    let life = candidate.heard();
    if claim.wait(Candidate { life, ..candidate }, quorum.clock.now() + life * 2) {
        let (clock, claim) = (Arc::clone(&quorum.clock), quorum.claims.enter(id));
        drop(quorum.runtime.spawn(ask_when_called(Arc::downgrade(quorum), clock, claim)));
    }
}

/// Asks for an acquisition that waits each time that a node calls it, until it waits no longer.
async fn ask_when_called<N: QuorumNode>(
    quorum: Weak<Quorum<N>>,
    clock: Arc<dyn Clock>,
    claim: ClaimGuard,
) {
    while let Some((_, until)) = claim.waiting() {
        let is_called = claim.called(&*clock, until).await;
        let (Some(quorum), Some((candidate, _))) = (quorum.upgrade(), claim.waiting()) else {
            return;
        };
        if is_called {
            // Boxed, so that a task that waits is small.
            Box::pin(ask_when_its_turn(&quorum, &claim, candidate)).await;
        } else {
            claim.stop_waiting_after(clock.now());
        }
    }
}

/// Asks for an acquisition whose turn it may be, and tells its runtime of a grant.
async fn ask_when_its_turn<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    claim: &Claim,
    candidate: Candidate,
) {
    let clock = &*quorum.clock;
    let deadline = clock.now() + quorum.settings.patience() * 2;
    let Some(_turn) = claim.turn(clock, deadline).await else { return };
    let id = candidate.command.id;
    // An earlier call has got the lock and reported it.
    if quorum.records.lock().get(id).is_some() {
        return;
    }
    if let Ok(VoteOutcome::Granted(granted)) = ask(quorum, claim, &candidate, true, deadline).await
    {
        claim.stop_waiting();
        let (heartbeat, name) = (candidate.heartbeat(), candidate.command.name);
        publish(quorum, id.runtime(), Push::Granted { name, id, granted, heartbeat });
    }
}
