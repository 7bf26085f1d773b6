use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    command::{NodeCommand, Word},
    node::QuorumNode,
    store::Inner,
    tally::{Nodes, bit},
};
use crate::{
    backoff::backoff,
    clock::{Clock, Instant},
};

/// The end of a lease that a node may not have heard of.
#[derive(Debug, Clone)]
// ADR 0037
pub(crate) struct Missed {
    /// What ends the lease there.
    end: NodeCommand,
    /// Until when the lock is kept closed in place of the lease.
    closed_until: Option<Instant>,
    /// Until when the lease may be there.
    until: Instant,
}

impl Missed {
    pub(crate) fn end(end: NodeCommand, until: Instant) -> Self {
        Self { end, closed_until: None, until }
    }

    /// The lock is kept closed until then; `end` is what ends the lease after that.
    pub(crate) fn kept(self, closed_until: Instant) -> Self {
        Self { closed_until: Some(closed_until), ..self }
    }

    /// What to tell the node at an instant; nothing when the lease is over there by itself.
    fn command(&self, now: Instant) -> Option<NodeCommand> {
        if let Some(until) = self.closed_until.filter(|until| now < *until) {
            // Never shorter than what is left, as nodes count in whole milliseconds.
            let rest = until.saturating_since(now).as_nanos().div_ceil(1_000_000);
            let rest = Duration::from_millis(u64::try_from(rest).unwrap_or(u64::MAX));
            let word = Word::Keep { attempt: self.end.word.attempt(), fence: 0, rest };
            return Some(NodeCommand { word, ..self.end.clone() });
        }
        (now < self.until).then(|| self.end.clone())
    }
}

impl<N: QuorumNode> Inner<N> {
    /// Tells nodes in the background that did not say that they have heard of the end of a lease.
    pub(crate) fn insist_at(self: &Arc<Self>, at: Nodes, missed: impl Fn(usize) -> Missed) {
        for node in (0..self.nodes.len()).filter(|node| at & bit(*node) != 0) {
            let (store, clock) = (Arc::downgrade(self), Arc::clone(&self.clock));
            drop(self.runtime.spawn(Self::insist(store, clock, node, missed(node))));
        }
    }

    /// Tells a node until it answers, or the lease is over there by itself, or nobody has the store any
    /// more.
    async fn insist(store: Weak<Self>, clock: Arc<dyn Clock>, node: usize, missed: Missed) {
        let (shortest, longest) = (Duration::from_millis(50), Duration::from_secs(2));
        for tries in 0.. {
            let Some(fraction) = store.upgrade().map(|inner| inner.entropy.fraction()) else {
                return;
            };
            let pause = backoff(shortest, longest, tries, fraction);
            clock.sleep_until(clock.now() + pause).await;
            let Some(inner) = store.upgrade() else { return };
            let now = clock.now();
            let Some(command) = missed.command(now) else { return };
            // One that rests after failures would fail once more.
            if !inner.health[node].is_unwell(now) {
                let deadline = now + inner.settings.patience();
                if inner.send(node, command, deadline).await.is_ok() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::types::{AcquisitionId, LockName, RuntimeId};

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn missed() -> Missed {
        let (name, id) = (
            LockName::new("a").unwrap(),
            AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), 1),
        );
        let word = Word::End { attempt: 3, fence: 0, marks: false };
        Missed::end(NodeCommand { name, id, word }, at(100))
    }

    #[test]
    fn an_end_is_told_until_the_lease_is_over() {
        let word = |now| missed().command(now).map(|command| command.word);
        assert!(matches!(word(at(99)), Some(Word::End { attempt: 3, .. })));
        assert!(word(at(100)).is_none());
    }

    #[test]
    fn a_lock_is_kept_closed_for_the_rest_and_then_its_lease_ends() {
        let word = |closed, now| missed().kept(at(closed)).command(now).map(|command| command.word);
        let now = at(30) + Duration::from_micros(1);
        let Some(Word::Keep { attempt: 3, fence: 0, rest }) = word(50, now) else {
            panic!("it is to be closed")
        };
        assert_eq!(rest, Duration::from_millis(20), "whole milliseconds, and no fewer");
        assert!(matches!(word(50, at(50)), Some(Word::End { .. })), "the lease is still there");
        assert!(matches!(word(200, at(150)), Some(Word::Keep { .. })), "closed for longer");
        assert!(word(200, at(200)).is_none());
    }
}
