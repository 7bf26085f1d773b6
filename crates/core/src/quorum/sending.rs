use std::{sync::Arc, time::Duration};

use super::{
    command::{Busy, NodeAnswer, NodeCommand, Vote},
    failure::{out, strange},
    health::unwell,
    node::QuorumNode,
    store::Inner,
    tally::{Nodes, bit},
};
use crate::{clock::Instant, store::StoreError};

impl<N: QuorumNode> Inner<N> {
    /// Sends a command to a node, within the time that one may take; its answer comes with its number.
    pub(crate) fn send(
        self: &Arc<Self>,
        node: usize,
        command: NodeCommand,
        deadline: Instant,
    ) -> impl Future<Output = (usize, Result<NodeAnswer, StoreError>)> + Send + use<N> {
        let inner = Arc::clone(self);
        async move {
            let sent_at = inner.clock.now();
            let deadline = deadline.min(sent_at + inner.settings.patience());
            let answer = inner.nodes[node].send(command, deadline).await;
            inner.note(node, sent_at, answer.as_ref());
            (node, answer)
        }
    }

    /// Remembers how well a node has answered, and the time that it told.
    pub(crate) fn note(
        &self,
        node: usize,
        sent_at: Instant,
        answer: Result<&NodeAnswer, &StoreError>,
    ) {
        let (now, health) = (self.clock.now(), &self.health[node]);
        if let Ok(
            NodeAnswer::Granted(Vote { now: told @ 1.., .. })
            | NodeAnswer::Busy(Busy { now: told @ 1.., .. }),
        ) = answer
        {
            self.learn_time(node, *told, sent_at, now);
        }
        match answer {
            Ok(NodeAnswer::Out { rest }) => {
                if rest.is_none() {
                    self.nodes[node].has_no_mark();
                }
                health.rest(
                    now + rest.unwrap_or(Duration::from_millis(50)).min(Duration::from_secs(1)),
                );
            }
            Ok(_) => health.on_answer(now.saturating_since(sent_at)),
            Err(_) => health.on_failure(now),
        }
    }

    /// Why an answer counts as none.
    pub(crate) fn failure(
        &self,
        node: usize,
        answer: &Result<NodeAnswer, StoreError>,
    ) -> Option<StoreError> {
        match answer {
            Err(error) => Some(error.clone()),
            Ok(NodeAnswer::Out { rest }) => Some(out(&self.nodes[node].place(), *rest)),
            Ok(_) => None,
        }
    }

    pub(crate) fn unwell(&self, now: Instant) -> Nodes {
        let away = self.nodes.iter().enumerate().filter(|(_, node)| !node.is_ready());
        away.fold(unwell(&self.health, now), |set, (node, _)| set | bit(node))
    }

    /// The answer of a node that does not belong to its command.
    pub(crate) fn strange(&self, node: usize) -> StoreError {
        strange().from_endpoint(self.nodes[node].place())
    }
}
