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
    /// Whether a copy of the command may have run. A node that redirects has not run the copy that it
    /// answers. But that may be the second one: the first was sent to it before the connection ended.
    may_have_run: bool,
}

impl<N: Send + Sync + 'static> ClusterTopology<N> {
    /// The attempts of a command about keys of a slot.
    pub(crate) fn attempts(self: &Arc<Self>, slot: u16, deadline: Instant) -> Attempts<'_, N> {
        let policy = RedirectPolicy::new(slot);
        Attempts { topology: self, policy, deadline, at: None, refused: None, may_have_run: false }
    }
}

impl<N: Send + Sync + 'static> Attempts<'_, N> {
    /// The node to which the command is sent next.
    pub(crate) async fn next(&mut self) -> Result<Arc<N>, StoreError> {
        let (topology, clock) = (self.topology, self.topology.clock());
        let next = async {
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
        };
        next.await.map_err(|error| ended(error, self.may_have_run))
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
            return Some(Err(ended(error, self.may_have_run)));
        };
        self.may_have_run |= error.kind() == StoreErrorKind::Indeterminate;
        let is_elsewhere = matches!(&redirect, Redirect::Moved { to, .. } if *to == node.endpoint);
        let error = not_run(&error, if is_elsewhere { OTHER_NODE } else { REPLACED });
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
            return Some(Err(ended(error, self.may_have_run)));
        }
        self.refused = Some(error);
        None
    }
}

/// The error that a command ends with, a copy of which may have run.
fn ended(error: StoreError, may_have_run: bool) -> StoreError {
    if may_have_run { error.or_unknown() } else { error }
}

/// The error of a command that a node has refused because of its slot.
fn not_run(refusal: &StoreError, remedy: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Definite, refusal.what().to_owned(), remedy).as_answer()
}

const REPLACED: &str =
    "the Cluster moves or replaces owners of slots; it is retried where the caller waits";
/// A node that names its own address as that of the owner.
const OTHER_NODE: &str = "another node is at this address than the one that announces it: if that lasts, correct \
     `cluster-announce-ip` and `cluster-announce-port` of both; it is retried where the caller waits";

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use leasehold_core::SystemClock;

    use super::*;
    use crate::{config::RedisConfig, endpoint::Endpoint};

    fn moved() -> StoreError {
        let what = "MOVED 7 127.0.0.1:7001";
        StoreError::new(StoreErrorKind::Definite, what, "follow it").as_answer()
    }

    #[test]
    fn a_command_whose_first_copy_may_have_run_does_not_end_as_one_that_has_not() {
        let config = RedisConfig::new("redis+cluster://a:1").unwrap();
        let open = |_: &RedisConfig, _: &[RangeInclusive<u16>]| Ok(());
        let topology = ClusterTopology::new(&config, Arc::new(SystemClock), None, Box::new(open));
        topology.moved(7, &Endpoint { host: "b".into(), port: 2 }).unwrap();
        let end = |redirections: &[StoreError], last: StoreError| {
            let mut attempts = topology.attempts(7, Instant::default());
            for redirection in redirections {
                attempts.at = topology.known_owner(7);
                assert!(attempts.settle::<()>(Err(redirection.clone())).is_none());
            }
            attempts.at = topology.known_owner(7);
            attempts.settle::<()>(Err(last)).unwrap().unwrap_err().kind()
        };
        let away = || StoreError::new(StoreErrorKind::Definite, "it is away", "wait");
        assert_eq!(end(&[moved()], away()), StoreErrorKind::Definite);
        // The connection ended before the answer to the first copy; the second was redirected.
        let second = [moved().or_unknown(), moved()];
        assert_eq!(end(&second, away()), StoreErrorKind::Indeterminate);
        let config = StoreError::new(StoreErrorKind::Config, "no right", "grant it");
        assert_eq!(end(&second, config), StoreErrorKind::Config);
    }
}
