use std::sync::Arc;

use leasehold_core::{Entropy, Instant, StoreError, StoreErrorKind, SystemEntropy};

use super::{
    redirect::{Learnt, Redirect, RedirectPolicy},
    topology::{ClusterNode, ClusterTopology},
};

/// The attempts of one command, until a node has run it: each is [sent](Self::next), and its
/// answer [judged](Self::settle), until one is no redirection or the deadline comes.
///
/// A node that redirects a command, or refuses it because nobody serves its slot, has not run it.
pub(crate) struct Attempts<'a, N> {
    topology: &'a Arc<ClusterTopology<N>>,
    policy: RedirectPolicy,
    deadline: Instant,
    /// Where the present attempt went.
    at: Option<Arc<ClusterNode<N>>>,
    /// Why the last attempt is repeated.
    refused: Option<StoreError>,
    /// What is known of earlier attempts.
    past: Past,
}

impl<N: Send + Sync + 'static> ClusterTopology<N> {
    /// The attempts of a command about keys of a slot.
    pub(crate) fn attempts(self: &Arc<Self>, slot: u16, deadline: Instant) -> Attempts<'_, N> {
        let (policy, past) = (RedirectPolicy::new(slot), Past::default());
        Attempts { topology: self, policy, deadline, at: None, refused: None, past }
    }
}

impl<N: Send + Sync + 'static> Attempts<'_, N> {
    /// The node to which the command is sent next.
    pub(crate) async fn next(&mut self) -> Result<Arc<N>, StoreError> {
        let past = self.past;
        self.next_node().await.map_err(|error| past.told(error))
    }

    async fn next_node(&mut self) -> Result<Arc<N>, StoreError> {
        let (topology, clock) = (self.topology, self.topology.clock());
        if let Some(refused) = self.refused.take()
            && let Some(pause) = self.policy.pause(SystemEntropy.fraction())
        {
            let until = clock.now() + pause;
            if until >= self.deadline {
                return Err(refused);
            }
            clock.sleep_until(until).await;
        }
        let (node, store) = if let Some(endpoint) = self.policy.ask() {
            let node = topology.node_at(&endpoint)?;
            let asking = topology.asking(&node)?;
            (node, asking)
        } else {
            let node = topology.owner(self.policy.slot(), self.deadline).await?;
            let store = Arc::clone(&node.store);
            (node, store)
        };
        self.at = Some(node);
        Ok(store)
    }

    /// The answer, unless the command is to be sent again.
    pub(crate) fn settle<T>(
        &mut self,
        answer: Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let (error, node) = match (answer, self.at.take()) {
            (Err(error), Some(node)) => (error, node),
            (answer, _) => return Some(answer),
        };
        let Some(redirect) = Redirect::of(&error, &node.endpoint) else {
            if !error.is_answer() {
                self.topology.missed();
            }
            return Some(Err(self.past.told(error)));
        };
        self.past.has(&error);
        let error = not_run(&error);
        let followed = match self.policy.redirected(redirect) {
            Learnt::Owner(endpoint) => self.topology.moved(self.policy.slot(), &endpoint),
            Learnt::Missed => {
                self.topology.missed();
                Ok(())
            }
            Learnt::Nothing => Ok(()),
            Learnt::Stray => Err(error.clone()),
        };
        if let Err(error) = followed {
            return Some(Err(self.past.told(error)));
        }
        self.refused = Some(error);
        None
    }
}

/// Whether a copy of a command may have run.
///
/// A node that redirects has not run the copy that it answers. But that may be the second one: the
/// first was sent to it before the connection ended.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    may_have_run: bool,
}

impl Past {
    /// A copy was redirected, with this error.
    fn has(&mut self, redirected: &StoreError) {
        self.may_have_run |= redirected.kind() == StoreErrorKind::Indeterminate;
    }

    /// The error that the command ends with.
    fn told(self, error: StoreError) -> StoreError {
        if self.may_have_run { error.or_unknown() } else { error }
    }
}

/// The error of a command that a node has refused because of its slot.
fn not_run(refusal: &StoreError) -> StoreError {
    const REMEDY: &str =
        "the Cluster moves or replaces owners of slots; it is retried where the caller waits";
    StoreError::new(StoreErrorKind::Definite, refusal.what().to_owned(), REMEDY).as_answer()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved() -> StoreError {
        let what = "MOVED 7 127.0.0.1:7001";
        StoreError::new(StoreErrorKind::Definite, what, "follow it").as_answer()
    }

    #[test]
    fn a_command_whose_first_copy_may_have_run_does_not_end_as_one_that_has_not() {
        let mut past = Past::default();
        past.has(&moved());
        assert_eq!(past.told(not_run(&moved())).kind(), StoreErrorKind::Definite);
        // The connection ended before the answer to the first copy; the second was redirected.
        past.has(&moved().or_unknown());
        past.has(&moved());
        assert_eq!(past.told(not_run(&moved())).kind(), StoreErrorKind::Indeterminate);
        let config = StoreError::new(StoreErrorKind::Config, "no right", "grant it");
        assert_eq!(past.told(config).kind(), StoreErrorKind::Config);
    }
}
