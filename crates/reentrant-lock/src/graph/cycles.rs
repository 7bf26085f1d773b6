//! Cycles in a graph of numbered nodes. The work grows with nodes and edges, and with nothing else.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, mem,
};

use leasehold_core::{LockName, RuntimeId};

/// From each node to others; an edge is the other node and a label.
pub(super) type Edges = [Vec<(usize, usize)>];

/// A cycle: its nodes, each with the label of the edge to the next, the last one to the first.
pub(super) type Ring = Vec<(usize, usize)>;

/// One cycle of each part of the graph where everybody can reach everybody: a shortest one through
/// the first node of the part. Edges from a node to itself do not count.
// ADR 0022
pub(super) fn cycles(edges: &Edges) -> Vec<Ring> {
    let parts = parts(edges);
    let mut first = BTreeMap::new();
    for (node, part) in parts.iter().enumerate() {
        first.entry(part).or_insert(node);
    }
    let mut starts: Vec<usize> = first.into_values().collect();
    starts.sort_unstable();
    let shortest = |start: usize| ring(edges, start, |node| parts[node] == parts[start]);
    starts.into_iter().filter_map(shortest).collect()
}

/// A shortest cycle through a node, over nodes that count.
pub(super) fn ring(edges: &Edges, start: usize, counts: impl Fn(usize) -> bool) -> Option<Ring> {
    // From where each node was reached, and by which edge.
    let mut from = BTreeMap::<usize, (usize, usize)>::new();
    let mut reached = VecDeque::from([start]);
    while let Some(node) = reached.pop_front() {
        for &(to, label) in &edges[node] {
            if to == start && node != start {
                let mut ring = vec![(node, label)];
                while let Some(&(before, label)) = from.get(&ring[ring.len() - 1].0) {
                    ring.push((before, label));
                }
                ring.reverse();
                return Some(ring);
            }
            if to != start && counts(to) && !from.contains_key(&to) {
                from.insert(to, (node, label));
                reached.push_back(to);
            }
        }
    }
    None
}

/// A number for each node: the same for nodes that can reach each other.
///
/// Kosaraju's algorithm, without recursion.
fn parts(edges: &Edges) -> Vec<usize> {
    let mut seen = vec![false; edges.len()];
    // In the order in which a search in depth leaves them.
    let mut left = Vec::with_capacity(edges.len());
    let mut backwards = vec![Vec::new(); edges.len()];
    for root in 0..edges.len() {
        // Nodes on the way from the root, each with its next edge.
        let mut way = if seen[root] { Vec::new() } else { vec![(root, 0)] };
        seen[root] = true;
        while let Some((node, edge)) = way.last_mut() {
            if let Some(&(to, _)) = edges[*node].get(*edge) {
                *edge += 1;
                backwards[to].push(*node);
                if !mem::replace(&mut seen[to], true) {
                    way.push((to, 0));
                }
            } else {
                left.push(*node);
                way.pop();
            }
        }
    }
    let mut part = vec![None; edges.len()];
    for root in left.into_iter().rev() {
        let mut reached = vec![root];
        while let Some(node) = reached.pop() {
            if part[node].is_none() {
                part[node] = Some(root);
                reached.extend(&backwards[node]);
            }
        }
    }
    part.into_iter().flatten().collect()
}

/// A cycle of waits: each step holds a lock for which the step before it waits.
///
/// Waits end with their time, and then the cycle does. Where callers take several locks in one
/// order, as `LockRuntime::all` does, there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// How sure it is.
    pub certainty: Certainty,
    /// The steps; the last one waits for the first.
    pub steps: Vec<CycleStep>,
}

/// How sure it is that none of a [`Cycle`] goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// It may be that none goes on: Redis knows processes and not tasks. One task of a process may
    /// hold a lock, and another task wait for the next.
    Possible,
    /// None goes on before its wait is over: each step is an owner of this runtime that waits for
    /// one lock alone, as long as nothing else ends its leases.
    Certain,
}

/// One step of a [`Cycle`]: a process, or with [`Certainty::Certain`] an owner of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CycleStep {
    /// The runtime.
    pub runtime: RuntimeId,
    /// Its label.
    pub label: String,
    /// The lock that it holds, for which the step before waits.
    pub holds: LockName,
    /// The lock for which it waits.
    pub waits_for: LockName,
}

impl Cycle {
    /// The cycle of a ring, whose edges have locks as labels; `step` gets a node, the lock that it
    /// holds, and the one for which it waits.
    pub(super) fn of(
        certainty: Certainty,
        ring: &Ring,
        step: impl Fn(usize, usize, usize) -> CycleStep,
    ) -> Self {
        let before = ring.iter().cycle().skip(ring.len() - 1);
        let steps = ring.iter().zip(before);
        let steps = steps.map(|((node, waits_for), (_, holds))| step(*node, *holds, *waits_for));
        Self { certainty, steps: steps.collect() }
    }

    /// Returns the locks of the cycle, each once.
    pub fn locks(&self) -> impl Iterator<Item = &LockName> {
        self.steps.iter().map(|step| &step.holds)
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, CycleStep { label, holds, waits_for, .. }) in self.steps.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            let who = match self.certainty {
                Certainty::Certain => "an owner",
                Certainty::Possible => label,
            };
            write!(f, "{who} holds {holds:?} and waits for {waits_for:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(nodes: usize, all: &[(usize, usize)]) -> Vec<Vec<(usize, usize)>> {
        let mut edges = vec![Vec::new(); nodes];
        for (label, (from, to)) in all.iter().enumerate() {
            edges[*from].push((*to, label));
        }
        edges
    }

    #[test]
    fn a_chain_has_no_cycle() {
        assert!(cycles(&edges(4, &[(0, 1), (1, 2), (3, 2), (0, 2)])).is_empty());
        assert!(cycles(&edges(1, &[(0, 0)])).is_empty(), "nobody waits for itself");
        assert!(cycles(&[]).is_empty());
    }

    #[test]
    fn each_part_has_one_cycle_and_a_short_one() {
        let pairs = [(0, 1), (1, 0), (1, 2), (3, 4), (4, 5), (5, 3), (4, 3)];
        let found = cycles(&edges(6, &pairs));
        assert_eq!(found, [vec![(0, 0), (1, 1)], vec![(3, 3), (4, 6)]]);
    }

    #[test]
    fn a_cycle_starts_where_it_was_asked_for() {
        let graph = edges(4, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 0)]);
        assert_eq!(ring(&graph, 1, |_| true), Some(vec![(1, 1), (2, 2)]));
        assert_eq!(ring(&graph, 0, |_| true).map(|ring| ring.len()), Some(4));
        assert_eq!(ring(&graph, 0, |node| node != 3), None);
    }

    #[test]
    fn very_many_nodes_are_no_trouble() {
        let many = 100_000;
        let circle: Vec<_> = (0..many).map(|node| (node, (node + 1) % many)).collect();
        assert_eq!(cycles(&edges(many, &circle)).iter().map(Vec::len).sum::<usize>(), many);
        // Everybody waits for one, who waits for the last.
        let mut star: Vec<_> = (1..many).map(|node| (node, 0)).collect();
        star.push((0, many - 1));
        assert_eq!(cycles(&edges(many, &star)), [vec![(0, many - 1), (many - 1, many - 2)]]);
    }
}
