use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId};

use super::{
    blocks::{Block, Blocks},
    deed::Deed,
    event::Event,
    violation::Violation,
};

/// The first token of a grant and its runtime: two masters at once may give out the same token.
type Key = (Fence, RuntimeId);

/// What tasks had of one grant.
#[derive(Debug, Default)]
struct Turn {
    id: Option<AcquisitionId>,
    leases: Vec<Taken>,
}

/// A lease that a task had.
#[derive(Debug, Clone, Copy)]
struct Taken {
    lease: AcquisitionId,
    fence: Fence,
    from: Instant,
    ended: Option<Instant>,
}

/// How many renewals may confirm a grant before its first lease is taken.
const CONFIRMATIONS: usize = 8;
/// The same where a new master had no replicas at first: then those that wait for one stand in line,
/// and most are not sent in time, or not answered.
const CONFIRMATIONS_AFTER_FAILOVER: usize = 64;

/// Checks what a spy saw of grants against what tasks had: blocks grow, tokens come out of a block
/// of their own runtime and in order, a turn begins once, and only a held lease is renewed.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    if blocks.is_empty() {
        return;
    }
    check_growth(blocks, violations);
    let turns = gather(events, blocks, violations);
    for turn in turns.values() {
        check_order(turn, violations);
    }
    check_once(&turns, violations);
    check_ends(events, blocks, violations);
    check_renewals(events, blocks, &turns, violations);
}

fn check_growth(blocks: &Blocks, violations: &mut Vec<Violation>) {
    let mut minted: Vec<&Block> = blocks.iter().filter(|block| block.reign.is_some()).collect();
    // Stable: grants of one instant stay in the order of their tokens.
    minted.sort_by_key(|block| block.minted_at);
    for pair in minted.windows(2) {
        let [earlier, later] = pair else { continue };
        // What a failover has lost does not count, unless a task took it: `fences` looks at that.
        let is_below = earlier.reign == later.reign && later.first <= earlier.last;
        if is_below || later.last < later.first {
            let (earlier, later) = ((earlier.id, earlier.last), (later.id, later.first));
            violations.push(Violation::BlockFell { earlier, later });
        }
    }
}

fn gather(
    events: &[Event],
    blocks: &Blocks,
    violations: &mut Vec<Violation>,
) -> BTreeMap<Key, Turn> {
    let (mut turns, mut turn_of) = (BTreeMap::<Key, Turn>::new(), BTreeMap::new());
    for event in events {
        match *event {
            Event::Granted { fence, lease, granted_at: from, .. } => {
                if turn_of.contains_key(&lease) {
                    continue;
                }
                let Some(block) = blocks.of(lease.runtime(), fence) else {
                    violations.push(Violation::ForeignToken { lease, fence });
                    continue;
                };
                let key = (block.first, lease.runtime());
                let turn = turns.entry(key).or_default();
                turn.id = Some(block.id);
                turn.leases.push(Taken { lease, fence, from, ended: None });
                turn_of.insert(lease, key);
            }
            Event::Released { lease, at } | Event::Lost { lease, at } => {
                let turn = turn_of.get(&lease).and_then(|key| turns.get_mut(key));
                let leases = turn.into_iter().flat_map(|turn| &mut turn.leases);
                for taken in leases.filter(|taken| taken.lease == lease) {
                    taken.ended.get_or_insert(at);
                }
            }
            _ => {}
        }
    }
    turns
}

fn check_order(turn: &Turn, violations: &mut Vec<Violation>) {
    for pair in turn.leases.windows(2) {
        let [earlier, later] = pair else { continue };
        if later.fence <= earlier.fence && later.lease != earlier.lease {
            violations.push(Violation::TokenFell {
                earlier: (earlier.lease, earlier.fence),
                later: (later.lease, later.fence),
            });
        }
    }
}

/// An acquisition that had a turn never has another one.
fn check_once(turns: &BTreeMap<Key, Turn>, violations: &mut Vec<Violation>) {
    let mut begun: BTreeMap<AcquisitionId, Fence> = BTreeMap::new();
    for ((first, _), turn) in turns {
        let Some(id) = turn.id else { continue };
        if let Some(before) = begun.insert(id, *first) {
            violations.push(Violation::TwoTurns { id, first: before, second: *first });
        }
    }
}

/// Once a runtime has sent the end of a turn, no task takes a lease of it.
fn check_ends(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    let (mut ended, mut known) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match *event {
            Event::Spied { deed: Deed::ReleaseSent { id, first }, .. } => {
                ended.insert((id.runtime(), first));
            }
            Event::Granted { fence, lease, .. } if known.insert(lease) => {
                let Some(block) = blocks.of(lease.runtime(), fence) else { continue };
                if ended.contains(&(lease.runtime(), block.first)) {
                    violations.push(Violation::TakenAfterEnd { lease, first: block.first });
                }
            }
            _ => {}
        }
    }
}

fn check_renewals(
    events: &[Event],
    blocks: &Blocks,
    turns: &BTreeMap<Key, Turn>,
    violations: &mut Vec<Violation>,
) {
    let (mut early, mut most) = (BTreeMap::<Key, usize>::new(), CONFIRMATIONS);
    for event in events {
        let Event::Spied { at, deed } = *event else { continue };
        if let Deed::TookOver { .. } = deed {
            most = CONFIRMATIONS_AFTER_FAILOVER;
        }
        let Deed::RenewalSent { id, first } = deed else { continue };
        let begun = turns.get(&(first, id.runtime())).map_or(&[][..], |turn| &turn.leases);
        let mut begun = begun.iter().filter(|taken| taken.from <= at).peekable();
        if begun.peek().is_none() {
            let count = early.entry((first, id.runtime())).or_default();
            *count += 1;
            if *count == most {
                violations.push(Violation::IdleRenewal { id, first, at });
            }
        } else if begun.all(|taken| taken.ended.is_some_and(|ended| ended < at)) {
            let known = blocks.of(id.runtime(), first).is_some_and(|block| block.id == id);
            if known {
                violations.push(Violation::IdleRenewal { id, first, at });
            }
        }
    }
}
