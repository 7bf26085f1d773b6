use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold_core::{Clock, Instant, backoff};

use super::{
    node::{NodeCommand, QuorumNode, Word},
    state::Quorum,
    tally::{NodeSet, members},
};
use crate::durations::REPEATS;

/// The end of a lease that a node may not have heard of.
#[derive(Debug, Clone)]
// ADR 0037
pub(super) struct Missed {
    /// What ends the lease there.
    pub(super) end: NodeCommand,
    /// Until when the lock is kept closed in place of the lease.
    pub(super) closed_until: Option<Instant>,
    /// Until when the lease may be there.
    pub(super) until: Instant,
}

impl Missed {
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

/// Tells nodes in the background that did not say that they have heard of the end of a lease.
pub(super) fn insist_at<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    at: NodeSet,
    missed: impl Fn(usize) -> Missed,
) {
    for node in members(at) {
        let clock = Arc::clone(&quorum.clock);
        let insisting = insist(Arc::downgrade(quorum), clock, node, missed(node));
        drop(quorum.runtime.spawn(insisting));
    }
}

/// Tells a node until it answers, or the lease is over there by itself, or nobody has the store any more.
async fn insist<N: QuorumNode>(
    quorum: Weak<Quorum<N>>,
    clock: Arc<dyn Clock>,
    node: usize,
    missed: Missed,
) {
    for tries in 0.. {
        let Some(until) = quorum.upgrade().map(|quorum| quorum.next_try(tries)) else { return };
        clock.sleep_until(until).await;
        let Some(quorum) = quorum.upgrade() else { return };
        let now = clock.now();
        let Some(command) = missed.command(now) else { return };
        // One that rests after failures would fail once more.
        if !quorum.is_unwell(node) && quorum.reaches(node, command).await {
            return;
        }
    }
}

/// How often a try is taken back at a node that does not answer.
const TAKE_BACKS: u32 = 4;

/// Ends a try at nodes in the background, wherever it may have come to: also at one that rests after failures, as
/// nobody else ends the try there.
pub(super) fn take_back<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    at: NodeSet,
    end: impl Fn(usize) -> NodeCommand,
) {
    for node in members(at) {
        let (quorum, end) = (Arc::clone(quorum), end(node));
        let runtime = quorum.runtime.clone();
        drop(runtime.spawn(async move {
            for tries in 0..TAKE_BACKS {
                if quorum.reaches(node, end.clone()).await {
                    return;
                }
                quorum.clock.sleep_until(quorum.next_try(tries)).await;
            }
        }));
    }
}

impl<N: QuorumNode> Quorum<N> {
    /// When a node is told again.
    fn next_try(&self, tries: u32) -> Instant {
        self.clock.now() + backoff(REPEATS, tries, self.entropy.fraction())
    }

    /// Tells a node; returns whether it has answered.
    async fn reaches(self: &Arc<Self>, node: usize, command: NodeCommand) -> bool {
        let deadline = self.clock.now() + self.settings.patience();
        self.send(node, command, deadline).await.1.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use leasehold_core::{AcquisitionId, LockName, RuntimeId};

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn missed(closed_until: Option<Instant>) -> Missed {
        let (name, id) = (
            LockName::new("a").unwrap(),
            AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), 1),
        );
        let word = Word::End { attempt: 3, fence: 0, marks: false };
        Missed { end: NodeCommand { name, id, word }, closed_until, until: at(100) }
    }

    #[test]
    fn an_end_is_told_until_the_lease_is_over() {
        let word = |now| missed(None).command(now).map(|command| command.word);
        assert!(matches!(word(at(99)), Some(Word::End { attempt: 3, .. })));
        assert!(word(at(100)).is_none());
    }

    #[test]
    fn a_lock_is_kept_closed_for_the_rest_and_then_its_lease_ends() {
        let word = |closed, now| missed(Some(at(closed))).command(now).map(|command| command.word);
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
