use std::{sync::Arc, time::Duration};

use super::{
    attempt::{Asked, Asking, Taken},
    command::{NodeCommand, Word},
    failure::{kept_for_too_long, too_few},
    insisting::Missed,
    node::QuorumNode,
    record::Known,
    round::Round,
    store::Inner,
    tally::{Nodes, bit, count, kth_longest, majority},
};
use crate::{
    clock::Instant,
    store::{AcquireAnswer, Next, Release, ReleaseAnswer, StoreError, Withdraw, WithdrawAnswer},
    types::LockName,
};

impl<N: QuorumNode> Inner<N> {
    pub(crate) async fn release(
        self: &Arc<Self>,
        command: Release,
        deadline: Instant,
    ) -> Result<ReleaseAnswer, StoreError> {
        if let Some(rest) = command.keep_in_range() {
            return self.keep(&command, rest, deadline).await;
        }
        let ended = self.end(&command, deadline).await?;
        let Release { name, next: Some(next), .. } = command else { return Ok(ended) };
        self.go_on(name, next, ended, deadline).await
    }

    /// Ends a lease: it is over when a majority is free of it.
    async fn end(
        self: &Arc<Self>,
        command: &Release,
        deadline: Instant,
    ) -> Result<ReleaseAnswer, StoreError> {
        let Release { ref name, id, fence, .. } = *command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        self.waiting.lock().remove(id);
        self.call_off(id);
        let known = self.known_to_end(name, id, fence);
        let (all, until) = (self.all(), self.clock.now());
        let unknown = Known {
            attempt: 0,
            fence: 0,
            asked: all,
            has_waited: false,
            holding: all,
            ended: 0,
            until,
        };
        let Known { attempt, asked, has_waited, holding, ended, until, .. } =
            known.unwrap_or(unknown);
        let fence = if known.is_some() { 0 } else { fence.get() };
        let make = |node| {
            let marks = attempt != 0 && asked & !holding & bit(node) != 0;
            let word = Word::End { attempt, fence, marks };
            NodeCommand { name: name.clone(), id, word }
        };
        let enough =
            |round: &Round| count(round.done | round.gone | ended | (all & !asked)) >= needed;
        if has_waited {
            self.leave_lines(all & !asked, make, deadline);
        }
        let mut round = self.round(asked & !ended, make, deadline, enough).await;
        if count(round.kept) >= needed {
            let remaining = kth_longest(&mut round.left, needed);
            return Ok(ReleaseAnswer::Kept { remaining });
        }
        let ended = ended | round.done;
        if let Some(record) = self.records.lock().get_mut(id) {
            record.ended |= round.done;
        }
        if !enough(&round) {
            let answered = count(round.done | round.gone);
            return Err(too_few(answered, nodes, &round.failures, true));
        }
        let unknown = asked & !(ended | round.gone);
        if known.is_some() {
            self.records.lock().remove(id);
            self.insist_at(unknown, |node| Missed::end(make(node), until));
        }
        let had_it = count(ended | unknown) >= needed && ended != 0;
        Ok(if had_it { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
    }

    /// Takes the places of an acquisition back at nodes that have no lease of it: there they are in the
    /// way of those who wait. Nobody waits for that.
    fn leave_lines(
        self: &Arc<Self>,
        at: Nodes,
        end: impl Fn(usize) -> NodeCommand,
        deadline: Instant,
    ) {
        for node in (0..self.nodes.len()).filter(|node| at & bit(*node) != 0) {
            let leaving = self.send(node, end(node), deadline);
            drop(self.runtime.spawn(async move { drop(leaving.await) }));
        }
    }

    async fn keep(
        self: &Arc<Self>,
        command: &Release,
        rest: Duration,
        deadline: Instant,
    ) -> Result<ReleaseAnswer, StoreError> {
        let Release { ref name, id, fence, .. } = *command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        if rest > self.settings.most_ttl() {
            return Err(kept_for_too_long(rest, self.settings.most_ttl()));
        }
        let closed_until = self.clock.now() + rest;
        let mut known = self.known(name, id, fence);
        let (mut round, mut free) = (Round::default(), 0);
        for is_second in [false, true] {
            let to = known.map_or_else(|| self.all(), |known| known.asked);
            let attempt = known.map_or(0, |known| known.attempt);
            let block = if known.is_some() { 0 } else { fence.get() };
            let word = Word::Keep { attempt, fence: block, rest };
            let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
            let enough = |round: &Round| count(round.done) >= needed;
            round = self.round(to, make, deadline, enough).await;
            if enough(&round) {
                self.records.lock().remove(id);
                if let Some(Known { holding, until, has_waited, .. }) = known {
                    let end = |node| {
                        let marks = to & !holding & bit(node) != 0;
                        let word = Word::End { attempt, fence: 0, marks };
                        NodeCommand { name: name.clone(), id, word }
                    };
                    if has_waited {
                        self.leave_lines(self.all() & !to, end, deadline);
                    }
                    let missed = |node| Missed::end(end(node), until).kept(closed_until);
                    self.insist_at(to & !(round.done | round.gone), missed);
                }
                let remaining = kth_longest(&mut round.left, needed);
                return Ok(ReleaseAnswer::Kept { remaining });
            }
            free = round.gone | (self.all() & !to);
            if is_second || known.is_none() || count(free) >= needed && round.done == 0 {
                break;
            }
            let ttl = self.settings.usual_ttl();
            let _ = self.widen(name, id, fence, ttl, deadline).await;
            known = self.known(name, id, fence);
        }
        if count(free) >= needed {
            self.records.lock().remove(id);
            return Ok(ReleaseAnswer::Gone);
        }
        Err(too_few(count(round.done | round.gone), nodes, &round.failures, true))
    }

    /// Asks for the next acquisition of a runtime whose turn is over.
    async fn go_on(
        self: &Arc<Self>,
        name: LockName,
        next: Next,
        ended: ReleaseAnswer,
        deadline: Instant,
    ) -> Result<ReleaseAnswer, StoreError> {
        let Next { id, ttl, watermark, label, keeps, heartbeat } = next;
        let turn = self.set_out(id, deadline).await;
        if turn.is_some()
            && let Some(granted) = self.confirm(&name, id, deadline).await?
        {
            return Ok(ReleaseAnswer::NextGranted(granted));
        }
        let window = heartbeat.window(ttl);
        let micros = self.micros(&name);
        let waited = self.waiting.lock().waited(id);
        let asking =
            Asking { name, id, life: window, watermark, label, keeps, waited, heard: window };
        let asked = match &turn {
            // The lease has ended, whatever is wrong with the next one: that is told when it asks again.
            Some(turn) => match self.ask(turn, &asking, false, micros, deadline).await {
                Err(error) if !error.kind().is_transient() => return Ok(ended),
                asked => asked?,
            },
            None => Asked::Taken(Taken::soon()),
        };
        Ok(match self.answer(asked, asking, ttl, Some(heartbeat)) {
            AcquireAnswer::Granted(granted) => ReleaseAnswer::NextGranted(granted),
            AcquireAnswer::Queued(place) => ReleaseAnswer::NextQueued(place),
            AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn => ended,
        })
    }

    pub(crate) async fn withdraw(
        self: &Arc<Self>,
        Withdraw { name, id }: Withdraw,
        deadline: Instant,
    ) -> Result<WithdrawAnswer, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        self.waiting.lock().remove(id);
        self.call_off(id);
        let its = {
            let mut records = self.records.lock();
            records.get_mut(id).map(|record| {
                record.is_ending = true;
                record.until
            })
        };
        let make = |_| NodeCommand { name: name.clone(), id, word: Word::Withdraw };
        let enough = |round: &Round| count(round.done | round.gone) >= needed;
        let round = self.round(self.all(), make, deadline, enough).await;
        if !enough(&round) {
            let answered = count(round.done | round.gone);
            return Err(too_few(answered, nodes, &round.failures, true));
        }
        if let Some(until) = its {
            self.records.lock().remove(id);
            let unknown = self.all() & !(round.done | round.gone);
            self.insist_at(unknown, |node| Missed::end(make(node), until));
        }
        Ok(WithdrawAnswer { ended_grant: round.done != 0 })
    }
}
