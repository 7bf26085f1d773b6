use std::ops::RangeInclusive;

use redis::Value;

use crate::redis::{decode::text, place::Place};

/// Which master owns which slots, as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Whether the node takes commands: one that is cut off from most masters does not.
    pub is_ok: bool,
    /// The highest epoch that the node knows; a change of owners raises it.
    pub epoch: u64,
    /// In the order of the slots.
    pub owners: Vec<(RangeInclusive<u16>, Place)>,
}

/// Who was heard in a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heard {
    /// How many nodes were asked.
    pub asked: usize,
    /// How many have told of their view.
    pub told: usize,
    /// How many looks before this one, in a row, found nothing that was to be believed.
    pub in_vain: u32,
}

/// After so many looks in vain, what is known is given up.
const LONG: u32 = 4;

impl View {
    /// Reads the answers to `CLUSTER INFO` and `CLUSTER SLOTS` of the node at `teller`.
    pub(super) fn read(info: &Value, slots: &Value, teller: &Place) -> Option<Self> {
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
        })
    }

    /// Whether this view, the best of those that were `heard`, takes the place of a known one.
    ///
    /// One that is behind may be that of a node that is new, is cut off or was stopped for long. It
    /// counts only if most nodes know no better, or if it takes commands and nobody has known better
    /// for a while: the Cluster may have been made anew, perhaps elsewhere.
    pub fn replaces(&self, known: Option<&Self>, heard: Heard) -> bool {
        let is_behind = known.is_some_and(|known| known.is_better_than(self));
        let Heard { asked, told, in_vain } = heard;
        !is_behind || told * 2 > asked || self.is_ok && in_vain >= LONG
    }

    /// Whether this view is to be believed rather than another one.
    pub fn is_better_than(&self, other: &Self) -> bool {
        (self.is_ok, self.epoch) > (other.is_ok, other.epoch)
    }
}

/// The first and the last slot, and their master: host and port, and the id of the node.
fn owner(range: &Value, teller: &Place) -> Option<(RangeInclusive<u16>, Place)> {
    let Value::Array(range) = range else { return None };
    let [first, last, Value::Array(master), ..] = range.as_slice() else { return None };
    let [host, port, ..] = master.as_slice() else { return None };
    // A node that does not know its own address leaves it to the asker.
    let host = text(host).filter(|host| !host.is_empty() && host != "?");
    let host = host.unwrap_or_else(|| teller.host.clone());
    Some((number(first)?..=number(last)?, Place { host, port: number(port)? }))
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = vec![host, Value::Int(port), bulk("id")];
        let replica = vec![bulk("r"), Value::Int(1), bulk("id")];
        let nodes = [Value::Array(master), Value::Array(replica)];
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    fn view(state: &str, epoch: u64) -> View {
        let info = format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n");
        let slots = vec![range(9, 16_383, Value::Nil, 2), range(0, 8, bulk("a"), 1)];
        let teller = Place { host: "t".into(), port: 9 };
        View::read(&bulk(&info), &Value::Array(slots), &teller).unwrap()
    }

    #[test]
    fn a_view_has_the_masters_in_the_order_of_their_slots() {
        let View { is_ok, epoch, owners } = view("ok", 7);
        assert!(is_ok && epoch == 7);
        let at = |host: &str, port| Place { host: host.into(), port };
        assert_eq!(owners, [(0..=8, at("a", 1)), (9..=16_383, at("t", 2))]);
    }

    #[test]
    fn a_node_that_takes_commands_and_knows_the_latest_change_is_believed() {
        assert!(view("ok", 8).is_better_than(&view("ok", 7)));
        assert!(!view("ok", 7).is_better_than(&view("ok", 7)));
        assert!(view("ok", 1).is_better_than(&view("fail", 9)));
    }

    #[test]
    fn a_view_that_is_behind_counts_if_most_nodes_know_no_better() {
        let known = view("ok", 7);
        let heard = |told| Heard { asked: 4, told, in_vain: 0 };
        for (state, epoch) in [("ok", 7), ("ok", 8)] {
            assert!(view(state, epoch).replaces(Some(&known), heard(0)), "{state} {epoch}");
        }
        for (state, epoch) in [("ok", 6), ("fail", 7), ("fail", 9)] {
            let told = view(state, epoch);
            let replaces = |by| told.replaces(Some(&known), heard(by));
            assert_eq!([1, 2, 3, 4].map(replaces), [false, false, true, true], "{state} {epoch}");
            assert!(told.replaces(None, heard(1)), "nothing better is known");
        }
    }

    #[test]
    fn a_cluster_that_was_made_anew_elsewhere_is_believed_after_a_while() {
        let known = view("ok", 7);
        let after = |in_vain| Heard { asked: 4, told: 1, in_vain };
        for (state, in_vain, is_believed) in
            [("ok", 0, false), ("ok", LONG - 1, false), ("ok", LONG, true), ("fail", LONG, false)]
        {
            let told = view(state, 1);
            assert_eq!(
                told.replaces(Some(&known), after(in_vain)),
                is_believed,
                "{state} {in_vain}"
            );
        }
    }

    #[test]
    fn what_is_no_view_is_none() {
        let teller = Place { host: "t".into(), port: 9 };
        let none = Value::Array(Vec::new());
        assert_eq!(View::read(&bulk("cluster_state:ok"), &none, &teller), None);
        let info = bulk("cluster_state:ok\r\ncluster_current_epoch:1\r\n");
        assert_eq!(View::read(&info, &Value::Nil, &teller), None);
        assert_eq!(View::read(&info, &Value::Array(vec![Value::Nil]), &teller), None);
    }
}
