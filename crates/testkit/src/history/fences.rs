use std::collections::BTreeMap;

use leasehold_core::{AcquisitionId, Fence, Instant};

use super::{
    blocks::{Block, Blocks},
    event::Event,
    violation::Violation,
};

/// A lease as it was granted first.
#[derive(Debug, Clone, Copy)]
struct Grant {
    lease: AcquisitionId,
    fence: Fence,
    asked_at: Instant,
    granted_at: Instant,
}

/// Checks that every lease has one token, every token one lease, and that tokens grow in real time.
/// Returns the number of leases.
///
/// A turn that the server has forsaken may hand on tokens for a while: those are not compared.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) -> usize {
    let mut grants: BTreeMap<AcquisitionId, Grant> = BTreeMap::new();
    let mut tokens: BTreeMap<Fence, AcquisitionId> = BTreeMap::new();
    for event in events {
        let Event::Granted { fence, lease, asked_at, granted_at, .. } = *event else { continue };
        let grant = *grants.entry(lease).or_insert(Grant { lease, fence, asked_at, granted_at });
        if grant.fence != fence {
            violations.push(Violation::TwoTokens { lease, first: grant.fence, second: fence });
        }
        // Two masters at once may give out the same token.
        if blocks.of(lease.runtime(), fence).is_some_and(Block::is_disowned) {
            continue;
        }
        let first = *tokens.entry(fence).or_insert(lease);
        if first != lease {
            violations.push(Violation::SharedToken { fence, first, second: lease });
        }
    }
    let leases = grants.len();
    let is_void = |grant: &Grant| {
        let block = blocks.of(grant.lease.runtime(), grant.fence);
        block.is_some_and(|block| block.is_void(grant.granted_at))
    };
    check_growth(grants.into_values().filter(|grant| !is_void(grant)).collect(), violations);
    leases
}

/// Walks through the grants as they were asked for, beside the grants as they came: the highest
/// token that had come before a question bounds the token of its answer.
fn check_growth(grants: Vec<Grant>, violations: &mut Vec<Violation>) {
    let (mut asked, mut came) = (grants.clone(), grants);
    asked.sort_by_key(|grant| grant.asked_at);
    came.sort_by_key(|grant| grant.granted_at);
    let mut came = came.into_iter().peekable();
    let mut highest: Option<Grant> = None;
    for later in asked {
        while let Some(earlier) = came.next_if(|grant| grant.granted_at < later.asked_at) {
            if highest.is_none_or(|highest| earlier.fence > highest.fence) {
                highest = Some(earlier);
            }
        }
        // Equal tokens are a shared token, and reported as that.
        if let Some(earlier) = highest.filter(|earlier| earlier.fence > later.fence) {
            violations.push(Violation::TokenFell {
                earlier: (earlier.lease, earlier.fence),
                later: (later.lease, later.fence),
            });
        }
    }
}
