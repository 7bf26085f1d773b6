use std::sync::Arc;

use super::{
    command::{NodeCommand, Word},
    failure::too_few,
    node::QuorumNode,
    round::Round,
    store::Inner,
    tally::{count, kth_longest, majority},
};
use crate::{
    clock::Instant,
    store::{Granted, Hold, HoldAnswer, RenewAnswer, Renewal, StoreError},
    types::{AcquisitionId, FenceToken, LockName, Replication, Ttl},
};

impl<N: QuorumNode> Inner<N> {
    /// The grant of an acquisition that has one already, if a majority still has it.
    pub(crate) async fn confirm(
        self: &Arc<Self>,
        name: &LockName,
        id: AcquisitionId,
        deadline: Instant,
    ) -> Result<Option<Granted>, StoreError> {
        let its = {
            let records = self.records.lock();
            let its = records.get(id).filter(|record| record.name == *name && !record.is_ending);
            its.map(|record| (record.first, record.last))
        };
        let Some((first, last)) = its else { return Ok(None) };
        let Some(known) = self.known(name, id, first) else { return Ok(None) };
        let needed = majority(self.nodes.len());
        let word = Word::Settle { attempt: known.attempt, fence: known.fence };
        let command = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
        let enough = |round: &Round| count(round.done) >= needed;
        let mut round = self.round(known.asked, command, deadline, enough).await;
        if enough(&round) {
            let remaining = kth_longest(&mut round.left, needed);
            let (contended, regressed) = (round.contended, false);
            return Ok(Some(Granted { first, last, remaining, contended, regressed }));
        }
        if count(round.gone | (self.all() & !known.asked)) >= needed {
            let mut records = self.records.lock();
            if records.get(id).is_some_and(|record| record.attempt == known.attempt) {
                records.remove(id);
            }
            return Ok(None);
        }
        let answered = count(round.done | round.gone);
        Err(too_few(answered, self.nodes.len(), &round.failures, true))
    }

    pub(crate) async fn hold(
        self: &Arc<Self>,
        Hold { name, id, fence, update, ttl, acks }: Hold,
        deadline: Instant,
    ) -> Result<HoldAnswer, StoreError> {
        self.check(ttl, acks)?;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let mut failed = None;
        for is_second in [false, true] {
            let Some(known) = self.known(&name, id, fence) else { return Ok(HoldAnswer::Gone) };
            if let Some(record) = self.records.lock().get_mut(id) {
                record.hold(update);
            }
            let word = Word::Hold { attempt: known.attempt, update, ttl };
            let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
            let enough = |round: &Round| count(round.done) >= needed;
            let sent_at = self.clock.now();
            let mut round = self.round(known.asked, make, deadline, enough).await;
            if enough(&round) {
                let remaining = kth_longest(&mut round.left, needed);
                let mut records = self.records.lock();
                let its = records.get_mut(id).filter(|record| record.attempt == known.attempt);
                if let Some(record) = its {
                    record.lasts(sent_at, remaining);
                }
                return Ok(HoldAnswer::Held { remaining });
            }
            failed = Some(round);
            if !is_second {
                match self.widen(&name, id, fence, ttl, deadline).await? {
                    RenewAnswer::Renewed { .. } => {}
                    _ => return Ok(HoldAnswer::Gone),
                }
            }
        }
        let round = failed.unwrap_or_default();
        Err(too_few(count(round.done | round.gone), nodes, &round.failures, true))
    }

    /// Brings a lease to nodes that were not asked for it, where those that have it do not answer.
    pub(crate) async fn widen(
        self: &Arc<Self>,
        name: &LockName,
        id: AcquisitionId,
        fence: FenceToken,
        ttl: Ttl,
        deadline: Instant,
    ) -> Result<RenewAnswer, StoreError> {
        let renewal = Renewal { name: name.clone(), id, fence, ttl, acks: Replication::NONE };
        let renewed = self.renew(std::slice::from_ref(&renewal), deadline).await;
        renewed.into_iter().next().unwrap_or(Ok(RenewAnswer::Gone))
    }
}
