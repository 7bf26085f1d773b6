use std::{collections::BTreeMap, ops::RangeInclusive};

use leasehold_core::{Mutex, StoreError, StoreErrorKind};
use redis::{RedisError, Value, aio::MultiplexedConnection};

use super::slot::SLOTS;
use crate::{classify::NOT_THERE, decode::text, endpoint::Endpoint};

/// Which master owns which slots, as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Whether the node takes commands: one that is cut off from most masters does not.
    pub is_ok: bool,
    /// The highest epoch that the node knows; a change of owners raises it.
    pub epoch: u64,
    /// In the order of the slots.
    pub owners: Vec<(RangeInclusive<u16>, Endpoint)>,
    /// The masters that own slots, and their replicas: the id of each, and where it is.
    pub nodes: BTreeMap<String, Endpoint>,
}

impl View {
    /// Reads the answers to `CLUSTER INFO` and `CLUSTER SLOTS` of the node at `teller`.
    pub(super) fn read(info: &Value, slots: &Value, teller: &Endpoint) -> Option<Self> {
        let info = text(info)?;
        let field = |name| info.lines().find_map(|line| line.trim().strip_prefix(name));
        let Value::Array(slots) = slots else { return None };
        let mut owners: Vec<_> =
            slots.iter().map(|range| owner(range, teller)).collect::<Option<_>>()?;
        owners.sort_by_key(|(range, _): &(RangeInclusive<u16>, _)| *range.start());
        Some(Self {
            is_ok: field("cluster_state:")? == "ok",
            epoch: field("cluster_current_epoch:")?.parse().ok()?,
            owners,
            nodes: nodes(slots, teller),
        })
    }

    /// Whether this view and a known one are of one Cluster: a node keeps its id, whatever its endpoint
    /// and its role are.
    ///
    /// A server that only imitates a Cluster may give no ids. Then any two of them count as one.
    pub fn is_of(&self, known: &Self) -> bool {
        are_of(&self.nodes, &known.nodes)
    }

    /// Whether this view is to be believed rather than another one of the same Cluster.
    pub fn is_better_than(&self, other: &Self) -> bool {
        (self.is_ok, self.epoch) > (other.is_ok, other.epoch)
    }
}

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

/// Whether some nodes and the known ones are of one Cluster: they have most nodes of the smaller of
/// both in common. One is not enough: who leaves a Cluster keeps its id, and may join another one.
fn are_of(nodes: &BTreeMap<String, Endpoint>, known: &BTreeMap<String, Endpoint>) -> bool {
    let common = nodes.keys().filter(|id| known.contains_key(*id)).count();
    known.is_empty() || common * 2 > nodes.len().min(known.len())
}

/// The first and the last slot, and where their master is.
fn owner(range: &Value, teller: &Endpoint) -> Option<(RangeInclusive<u16>, Endpoint)> {
    let Value::Array(range) = range else { return None };
    let [first, last, master, ..] = range.as_slice() else { return None };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last < SLOTS).then_some(())?;
    Some((first..=last, endpoint(master, teller)?))
}

/// The nodes in the answer to `CLUSTER SLOTS` of the node at `teller`, by their ids.
fn nodes(slots: &[Value], teller: &Endpoint) -> BTreeMap<String, Endpoint> {
    few_nodes(slots, teller, usize::MAX)
}

/// The same of so many nodes of each range; the first one is the master.
fn few_nodes(slots: &[Value], teller: &Endpoint, most: usize) -> BTreeMap<String, Endpoint> {
    let of_range = |range: &Value| match range {
        Value::Array(range) => {
            range.iter().skip(2).take(most).filter_map(|node| named(node, teller)).collect()
        }
        _ => Vec::new(),
    };
    slots.iter().flat_map(of_range).collect()
}

/// What an answer to `CLUSTER SLOTS` of the node at `teller` says of an address that several nodes, or several
/// masters, announce: connections lead to one of them, whichever is meant.
pub fn shared(slots: &Value, teller: &Endpoint, are_masters: bool) -> Option<String> {
    let Value::Array(slots) = slots else { return None };
    let nodes = few_nodes(slots, teller, if are_masters { 1 } else { usize::MAX });
    let at = |one: &Endpoint| nodes.values().filter(|other| *other == one).count();
    let one = nodes.values().find(|one| at(one) > 1)?;
    Some(format!("the Cluster announces one address, {one}, for {} nodes", at(one)))
}

/// What to do about it.
pub const ONE_EACH: &str = "give each node an address of its own: correct its `cluster-announce-ip`, `cluster-announce-port` (with TLS \
     `cluster-announce-tls-port`) or `cluster-announce-hostname`";

/// The id of a node, and where it is.
fn named(node: &Value, teller: &Endpoint) -> Option<(String, Endpoint)> {
    let Value::Array(fields) = node else { return None };
    let id = text(fields.get(2)?).filter(|id| !id.is_empty())?;
    Some((id, endpoint(node, teller)?))
}

/// Where a node is: its host, its port, and what follows them.
fn endpoint(node: &Value, teller: &Endpoint) -> Option<Endpoint> {
    let Value::Array(node) = node else { return None };
    let [host, port, ..] = node.as_slice() else { return None };
    // A node that does not know its own address leaves it empty: the client knows it.
    let host = text(host).filter(|host| !host.is_empty() && host != "?");
    let host = host.unwrap_or_else(|| teller.host.clone());
    Some(Endpoint { host, port: number(port)? })
}

fn number(value: &Value) -> Option<u16> {
    let Value::Int(number) = value else { return None };
    u16::try_from(*number).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        cluster::SlotOwners,
        tests::values::{config, slots, text},
    };

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = vec![host, Value::Int(port), bulk(&format!("m{port}"))];
        let replica = vec![bulk("r"), Value::Int(port), bulk(&format!("r{port}"))];
        let nodes = [Value::Array(master), Value::Array(replica)];
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    fn view(state: &str, epoch: u64) -> View {
        let info = format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n");
        let slots = vec![range(9, 16_383, Value::Nil, 2), range(0, 8, bulk("a"), 1)];
        let teller = Endpoint { host: "t".into(), port: 9 };
        View::read(&bulk(&info), &Value::Array(slots), &teller).unwrap()
    }

    #[test]
    fn a_view_has_the_masters_in_the_order_of_their_slots() {
        let View { is_ok, epoch, owners, nodes } = view("ok", 7);
        assert!(is_ok && epoch == 7);
        let at = |host: &str, port| Endpoint { host: host.into(), port };
        assert_eq!(owners, [(0..=8, at("a", 1)), (9..=16_383, at("t", 2))]);
        let named =
            [("m1", at("a", 1)), ("m2", at("t", 2)), ("r1", at("r", 1)), ("r2", at("r", 2))];
        assert_eq!(nodes, named.map(|(id, endpoint)| (id.to_owned(), endpoint)).into());
    }

    /// A node that left keeps its id, and may bring it into another Cluster.
    #[test]
    fn a_cluster_is_known_by_most_of_its_nodes() {
        let of = |ids: &str| View {
            is_ok: true,
            epoch: 1,
            owners: Vec::new(),
            nodes: ids
                .chars()
                .map(|id| (id.into(), Endpoint { host: "h".into(), port: 1 }))
                .collect(),
        };
        for (told, known) in [("abd", "abc"), ("r", "ar"), ("abc", "a"), ("a", "abc"), ("x", "")] {
            assert!(of(told).is_of(&of(known)), "{told} of {known}");
        }
        for (told, known) in [("xyc", "abc"), ("xyzr", "ar"), ("xr", "abr"), ("", "a")] {
            assert!(!of(told).is_of(&of(known)), "{told} of {known}");
        }
    }

    #[test]
    fn a_node_that_takes_commands_and_knows_the_latest_change_is_believed() {
        assert!(view("ok", 8).is_better_than(&view("ok", 7)));
        assert!(!view("ok", 7).is_better_than(&view("ok", 7)));
        assert!(view("ok", 1).is_better_than(&view("fail", 9)));
    }

    #[test]
    fn what_is_no_view_is_none() {
        let teller = Endpoint { host: "t".into(), port: 9 };
        let none = Value::Array(Vec::new());
        assert_eq!(View::read(&bulk("cluster_state:ok"), &none, &teller), None);
        let info = bulk("cluster_state:ok\r\ncluster_current_epoch:1\r\n");
        assert_eq!(View::read(&info, &Value::Nil, &teller), None);
        assert_eq!(View::read(&info, &Value::Array(vec![Value::Nil]), &teller), None);
    }

    fn company(ids: &[&str]) -> Vec<Value> {
        let node = |id: &&str| Value::Array(vec![bulk("h"), Value::Int(1), bulk(id)]);
        let range = [Value::Int(0), Value::Int(8)].into_iter().chain(ids.iter().map(node));
        vec![Value::Array(range.collect())]
    }

    #[test]
    fn an_address_of_several_nodes_is_found() {
        let teller = Endpoint { host: "t".into(), port: 9 };
        let found =
            |ranges: Vec<Value>, are_masters| shared(&Value::Array(ranges), &teller, are_masters);
        let apart = || vec![range(0, 8, bulk("a"), 1), range(9, 16_383, bulk("b"), 2)];
        assert_eq!((found(apart(), true), found(apart(), false)), (None, None));
        // One master may have several ranges.
        let again = vec![range(0, 8, bulk("a"), 1), range(10, 12, bulk("a"), 1)];
        assert_eq!(found(again, true), None);
        let node = |port, id| Value::Array(vec![bulk("a"), Value::Int(port), bulk(id)]);
        let of = |first, nodes: &[Value]| {
            Value::Array(
                [Value::Int(first), Value::Int(first)].iter().chain(nodes).cloned().collect(),
            )
        };
        let masters = vec![of(0, &[node(1, "x")]), of(1, &[node(1, "y")])];
        let told = found(masters, true).unwrap();
        assert!(told.contains("one address, a:1, for 2 nodes"), "{told}");
        // A replica at the address of its master does no harm until it takes over.
        let replica = || vec![of(0, &[node(1, "x"), node(1, "y")])];
        assert!(found(replica(), true).is_none() && found(replica(), false).is_some());
        // Who only imitates a Cluster may give no ids.
        let nameless = vec![of(0, &[node(1, "")]), of(1, &[node(1, "")])];
        assert_eq!(found(nameless, true), None);
    }

    #[test]
    fn a_node_is_known_by_the_company_it_keeps() {
        let members = KnownNodes::default();
        assert!(members.are_of(&company(&["x"])), "none is known");
        let endpoint = Endpoint { host: "h".into(), port: 1 };
        let view = |ids: &[&str]| View {
            is_ok: true,
            epoch: 1,
            owners: Vec::new(),
            nodes: ids.iter().map(|id| ((*id).to_owned(), endpoint.clone())).collect(),
        };
        members.know(&view(&["a", "b"]));
        assert!(members.are_of(&company(&["new", "a", "b"])));
        assert!(!members.are_of(&company(&["x", "b"])) && !members.are_of(&[]));
        members.know(&view(&[]));
        assert!(members.are_of(&company(&["x"])));
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn every_view_is_read(info in text(), state in 0..3_u8, epoch in any::<u64>(), slots in slots()) {
            let info = match state {
                0 => info,
                1 => format!("cluster_state:ok\r\ncluster_current_epoch:{epoch}\r\n{info}"),
                _ => format!("{info}\r\ncluster_state:{info}\r\ncluster_current_epoch:{epoch}"),
            };
            let teller = Endpoint { host: "t".into(), port: 9 };
            if let Some(view) = View::read(&bulk(&info), &slots, &teller) {
                for (range, _) in &view.owners {
                    prop_assert!(range.start() <= range.end() && *range.end() < SLOTS, "{range:?}");
                }
                let (masters, mut owners) = (view.owners.clone(), SlotOwners::default());
                owners.replace(view, masters);
                for slot in [0, 1, SLOTS - 1, u16::MAX] {
                    owners.of(slot);
                }
            }
        }
    }
}
