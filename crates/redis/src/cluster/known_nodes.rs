use std::collections::BTreeMap;

use leasehold_core::{Mutex, StoreError, StoreErrorKind};
use redis::{RedisError, Value, aio::MultiplexedConnection};

use super::view::{View, are_of, nodes};
use crate::{classify::NOT_THERE, endpoint::Endpoint};

/// The nodes of the Cluster that a process knows, by their ids. A new connection has to lead to that
/// Cluster: the address of a node that died may belong to a node of another Cluster by now.
#[derive(Debug, Default)]
pub(crate) struct KnownNodes(Mutex<BTreeMap<String, Endpoint>>);

impl KnownNodes {
    /// These nodes are known from now on.
    pub(super) fn know(&self, view: &View) {
        *self.0.lock() = view.nodes.clone();
    }

    /// Asks the server of a new connection for its Cluster. Returns whether that is the known one.
    pub(crate) async fn has(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, RedisError> {
        let slots: Value = redis::cmd("CLUSTER").arg("SLOTS").query_async(connection).await?;
        Ok(matches!(slots, Value::Array(slots) if self.are_of(&slots)))
    }

    /// Whether an answer to `CLUSTER SLOTS` is of the known Cluster. Where no ids are known,
    /// nobody can be told from another.
    fn are_of(&self, slots: &[Value]) -> bool {
        // Only the ids count here.
        let teller = Endpoint { host: String::new(), port: 0 };
        are_of(&nodes(slots, &teller), &self.0.lock())
    }
}

/// The error of a connection to a node of another Cluster, or of none.
pub(crate) fn unknown_node() -> StoreError {
    let what = "the server does not name the nodes of the Cluster that this process knows";
    StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(ids: &[&str]) -> Vec<Value> {
        let bulk = |text: &str| Value::BulkString(text.into());
        let node = |id: &&str| Value::Array(vec![bulk("h"), Value::Int(1), bulk(id)]);
        let range = [Value::Int(0), Value::Int(8)].into_iter().chain(ids.iter().map(node));
        vec![Value::Array(range.collect())]
    }

    #[test]
    fn a_node_is_known_by_the_company_it_keeps() {
        let members = KnownNodes::default();
        assert!(members.are_of(&slots(&["x"])), "none is known");
        let endpoint = Endpoint { host: "h".into(), port: 1 };
        let view = |ids: &[&str]| View {
            is_ok: true,
            epoch: 1,
            owners: Vec::new(),
            nodes: ids.iter().map(|id| ((*id).to_owned(), endpoint.clone())).collect(),
        };
        members.know(&view(&["a", "b"]));
        assert!(members.are_of(&slots(&["new", "a", "b"])));
        assert!(!members.are_of(&slots(&["x", "b"])) && !members.are_of(&[]));
        members.know(&view(&[]));
        assert!(members.are_of(&slots(&["x"])));
    }
}
