use super::view::View;
use crate::endpoint::Endpoint;

/// What a probe of a Cluster is about.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// The addresses of the Cluster, as the user of the process has written them.
    pub seeds: &'a [Endpoint],
    /// What is known of the Cluster.
    pub known: Option<&'a View>,
    /// How many nodes were asked.
    pub asked: usize,
    /// How many probes in a row, before this one, found no view to believe.
    pub in_vain: u32,
    /// Whether no node of the known Cluster has answered for the longest ttl.
    pub is_silent: bool,
}

/// Which view is believed, of those that nodes gave in a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This one.
    Take(usize),
    /// This one, of a Cluster that has taken the place of the known one.
    Anew(usize),
    /// None: what is known is as good.
    None,
    /// None: the addresses lead to several Clusters, and no Cluster has most of them.
    Split,
}

/// After so many probes in vain, what is known is given up for an older view of the same Cluster.
const LONG: u32 = 4;

/// Chooses among the views that nodes gave, each with the endpoint of its node.
///
/// Epochs order the views of one Cluster, but not those of two Clusters: the address of a node that
/// died may belong to a node of another Cluster by now. So a view counts if it names most of the nodes
/// of the known view, or if most of its own nodes are in that. A process that knows no view believes
/// the Cluster to which most of its addresses lead. If the known nodes have not answered for as long
/// as any lease can last, and all addresses lead to another Cluster, then that has replaced the known
/// one.
// ADR 0032
pub fn choose(told: &[(Endpoint, View)], probe: Probe<'_>) -> Choice {
    let Some(known) = probe.known else { return first(told, probe.seeds) };
    let ours = told.iter().filter(|(_, view)| view.is_of(known)).count();
    match best(told, |view| view.is_of(known)) {
        Some(at) if replaces(&told[at].1, known, ours, probe) => Choice::Take(at),
        None if probe.is_silent => {
            let is_everywhere =
                |view: &View| view.is_ok && votes(told, view, probe.seeds) == probe.seeds.len();
            best(told, is_everywhere).map_or(Choice::None, Choice::Anew)
        }
        _ => Choice::None,
    }
}

/// Whether no other answer is needed to choose.
pub(super) fn is_enough(told: &[(Endpoint, View)], probe: Probe<'_>) -> bool {
    told.iter().any(|(_, view)| {
        view.is_ok
            && match probe.known {
                Some(known) => view.is_of(known) && !known.is_better_than(view),
                None => leads(told, view, probe.seeds),
            }
    })
}

/// Whether a view that `told` nodes gave replaces the known one of the same Cluster.
///
/// An older view may be that of a node that is cut off or was stopped for long. It counts only if most
/// nodes have no newer one, or if its node takes commands and no node had a newer one for a while.
fn replaces(view: &View, known: &View, told: usize, probe: Probe<'_>) -> bool {
    let is_behind = known.is_better_than(view);
    !is_behind || told * 2 > probe.asked || view.is_ok && probe.in_vain >= LONG
}

/// The choice of a process that knows no Cluster yet.
fn first(told: &[(Endpoint, View)], seeds: &[Endpoint]) -> Choice {
    // The view of a node that was just set up does not count beside one of a Cluster.
    let has_owners = told.iter().any(|(_, view)| !view.owners.is_empty());
    let counts =
        |view: &View| (!has_owners || !view.owners.is_empty()) && votes(told, view, seeds) > 0;
    if let Some(at) = best(told, |view| counts(view) && leads(told, view, seeds)) {
        return Choice::Take(at);
    }
    let Some(at) = best(told, counts) else { return Choice::None };
    let is_same = |(_, view): &(Endpoint, View)| !counts(view) || view.is_of(&told[at].1);
    if told.iter().all(is_same) { Choice::Take(at) } else { Choice::Split }
}

/// Whether most addresses lead to the Cluster of a view.
fn leads(told: &[(Endpoint, View)], view: &View, seeds: &[Endpoint]) -> bool {
    votes(told, view, seeds) * 2 > seeds.len()
}

/// How many addresses lead to the Cluster of a view: the node there says so, or if it does not answer,
/// the other nodes of the Cluster do.
fn votes(told: &[(Endpoint, View)], of: &View, seeds: &[Endpoint]) -> usize {
    let names = |(_, view): &(Endpoint, View), seed: &Endpoint| {
        view.is_of(of) && view.nodes.values().any(|endpoint| endpoint == seed)
    };
    let leads = |seed: &&Endpoint| match told.iter().find(|(teller, _)| teller == *seed) {
        Some((_, view)) => view.is_of(of),
        None => told.iter().any(|one| names(one, seed)),
    };
    seeds.iter().filter(leads).count()
}

/// The best of the views that count.
fn best(told: &[(Endpoint, View)], counts: impl Fn(&View) -> bool) -> Option<usize> {
    let mut best = None::<usize>;
    for (at, (_, view)) in told.iter().enumerate().filter(|(_, (_, view))| counts(view)) {
        if best.is_none_or(|best| view.is_better_than(&told[best].1)) {
            best = Some(at);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Endpoint {
        Endpoint { host: "h".into(), port }
    }

    /// What the node at a port tells: its Cluster has nodes of these ids, each at the port of its number.
    fn told(teller: u16, epoch: u64, ids: &[(&str, u16)]) -> (Endpoint, View) {
        let nodes = ids.iter().map(|(id, port)| ((*id).to_owned(), at(*port))).collect();
        let owners = ids.first().map(|(_, port)| (0..=16_383, at(*port)));
        (at(teller), View { is_ok: true, epoch, owners: owners.into_iter().collect(), nodes })
    }

    const OURS: &[(&str, u16)] = &[("a", 1), ("b", 2), ("c", 3)];
    const OTHERS: &[(&str, u16)] = &[("x", 1), ("y", 8)];

    fn probe<'a>(seeds: &'a [Endpoint], known: Option<&'a View>) -> Probe<'a> {
        Probe { seeds, known, asked: 3, in_vain: 0, is_silent: false }
    }

    #[test]
    fn a_stranger_is_not_believed_whatever_its_epoch() {
        let (seeds, known) = ([at(1), at(2), at(3)], told(1, 3, OURS).1);
        let probe = probe(&seeds, Some(&known));
        let both = [told(1, 50, OTHERS), told(2, 3, OURS)];
        assert_eq!(choose(&both, probe), Choice::Take(1));
        assert!(!is_enough(&both[..1], probe) && is_enough(&both, probe));
        assert_eq!(choose(&both[..1], probe), Choice::None);
        let patient = Probe { in_vain: 9, ..probe };
        assert_eq!(choose(&both[..1], patient), Choice::None, "others of ours may be cut off");
    }

    #[test]
    fn ids_change_one_after_the_other() {
        let (seeds, known) = ([at(1)], told(1, 3, OURS).1);
        let one_reset = [told(2, 4, &[("a2", 1), ("b", 2), ("c", 3), ("d", 4)])];
        assert_eq!(choose(&one_reset, probe(&seeds, Some(&known))), Choice::Take(0));
        let then = [told(4, 5, &[("a2", 1), ("d", 4)])];
        assert_eq!(choose(&then, probe(&seeds, Some(&one_reset[0].1))), Choice::Take(0));
        assert_eq!(choose(&then, probe(&seeds, Some(&known))), Choice::None);
    }

    #[test]
    fn a_replica_that_took_over_is_known() {
        let (seeds, known) = ([at(1)], told(1, 3, &[("a", 1), ("r", 7)]).1);
        let promoted = [told(7, 4, &[("r", 7)])];
        assert_eq!(choose(&promoted, probe(&seeds, Some(&known))), Choice::Take(0));
    }

    #[test]
    fn a_cluster_that_was_made_anew_is_believed_when_all_addresses_lead_there() {
        let (seeds, known) = ([at(1), at(8)], told(1, 7, OURS).1);
        let silent = Probe { is_silent: true, ..probe(&seeds, Some(&known)) };
        let (first, second) = (told(1, 1, OTHERS), told(8, 1, OTHERS));
        let choice = |told: &[_], probe| choose(told, probe);
        assert_eq!(choice(&[first.clone(), second.clone()], silent), Choice::Anew(0));
        assert_eq!(choice(std::slice::from_ref(&first), silent), Choice::Anew(0), "it names both");
        let early = Probe { is_silent: false, ..silent };
        assert_eq!(choice(&[first.clone(), second.clone()], early), Choice::None);
        let elsewhere = [at(1), at(9)];
        let some = Probe { seeds: &elsewhere, ..silent };
        assert_eq!(choice(&[first.clone(), second.clone()], some), Choice::None, "9 is silent");
        let back = [first, told(3, 7, OURS), second];
        assert_eq!(choice(&back, silent), Choice::Take(1), "one of ours is back");
    }

    #[test]
    fn a_process_that_knows_nothing_goes_where_most_addresses_lead() {
        let seeds = [at(1), at(2), at(3)];
        let probe = probe(&seeds, None);
        let stranger = told(1, 50, OTHERS);
        assert!(!is_enough(std::slice::from_ref(&stranger), probe), "1 of 3");
        let all = [stranger.clone(), told(2, 3, OURS)];
        assert_eq!(choose(&all, probe), Choice::Take(1), "its nodes name 3");
        assert!(is_enough(&all, probe));
        let unnamed = [stranger.clone(), told(2, 3, &[("b", 12), ("c", 13)])];
        assert_eq!(choose(&unnamed, probe), Choice::Split, "each has one of three");
        assert_eq!(choose(&[stranger], probe), Choice::Take(0), "nobody else is there");
        let new = (at(3), View { is_ok: true, epoch: 9, ..told(3, 9, &[]).1 });
        assert_eq!(choose(&[new.clone(), told(2, 3, OURS)], probe), Choice::Take(1));
        assert_eq!(choose(&[new], probe), Choice::Take(0), "the Cluster is being set up");
    }

    #[test]
    fn a_server_that_names_no_ids_is_believed_by_its_epoch() {
        let nameless = |teller, epoch| {
            let (endpoint, view) = told(teller, epoch, OURS);
            (endpoint, View { nodes: std::collections::BTreeMap::new(), ..view })
        };
        let (seeds, known) = ([at(1)], nameless(1, 3).1);
        assert_eq!(choose(&[nameless(2, 4)], probe(&seeds, Some(&known))), Choice::Take(0));
        let ours = told(1, 3, OURS).1;
        assert_eq!(choose(&[nameless(2, 4)], probe(&seeds, Some(&ours))), Choice::None);
        let both = [nameless(2, 4), nameless(3, 5)];
        assert_eq!(choose(&both, probe(&[at(2), at(3)], None)), Choice::Take(1));
    }

    #[test]
    fn a_view_that_is_behind_counts_if_most_nodes_know_no_better() {
        let (seeds, known) = ([at(1)], told(1, 7, OURS).1);
        let choice = |view: &(Endpoint, View), by: usize, in_vain| {
            let all: Vec<_> = std::iter::repeat_n(view.clone(), by).collect();
            choose(&all, Probe { asked: 4, in_vain, ..probe(&seeds, Some(&known)) })
        };
        let is_taken =
            |view: &(Endpoint, View), by, in_vain| choice(view, by, in_vain) != Choice::None;
        for epoch in [7, 8] {
            assert!(is_taken(&told(1, epoch, OURS), 1, 0), "{epoch}");
        }
        let failed = |epoch| {
            let (endpoint, view) = told(1, epoch, OURS);
            (endpoint, View { is_ok: false, ..view })
        };
        for view in [told(1, 6, OURS), failed(7), failed(9)] {
            assert_eq!([1, 2, 3, 4].map(|by| is_taken(&view, by, 0)), [false, false, true, true]);
            assert_eq!(is_taken(&view, 1, LONG), view.1.is_ok);
            assert!(!is_taken(&view, 1, LONG - 1));
        }
    }
}
