use std::sync::Arc;

use leasehold_core::NamePattern;

use super::core::Engine;
use crate::{graph::WaitGraph, listing::LockList};

impl Engine {
    /// Who holds which locks, who waits for them, and the cycles among them.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn wait_graph(self: &Arc<Self>) -> WaitGraph {
        let mut list = LockList::new(Arc::clone(self), NamePattern::default());
        let (mut locks, mut unread) = (Vec::new(), Vec::new());
        while let Some(item) = list.next().await {
            match item {
                Ok(lock) => locks.push(lock),
                Err(error) => unread.push(error),
            }
        }
        let own = if self.is_forked() { Vec::new() } else { self.own_cycles() };
        WaitGraph::of(&locks).with(own, unread)
    }
}
