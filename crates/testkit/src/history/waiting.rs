use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{AcquisitionId, Instant, seam::Part};

use super::{deed::Deed, event::Event, summary::Summary, violation::Violation};

/// What changes at an instant; more waiters and believers count before fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    BelieverCame,
    WaiterCame,
    WaiterWent,
    BelieverWent,
}

/// A time in which somebody waited and nobody believed.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: Instant,
    until: Instant,
}

/// Checks that nobody waits in vain for long while nothing goes wrong; tells the longest such time
/// that was seen.
pub(super) fn check(
    events: &[Event],
    beliefs: impl Iterator<Item = (Instant, Instant)>,
    summary: &mut Summary,
    violations: &mut Vec<Violation>,
) {
    let gaps = gaps(changes(events, beliefs.chain(unpolled(events))));
    for event in events {
        let Event::Calm { from, until, patience } = *event else { continue };
        for gap in &gaps {
            let (from, until) = (gap.from.max(from), gap.until.min(until));
            let waited = until.saturating_since(from);
            summary.longest_gap = summary.longest_gap.max(waited);
            let thousandths = waited.as_nanos() * 1_000 / patience.as_nanos().max(1);
            let thousandths = u32::try_from(thousandths).unwrap_or(u32::MAX);
            summary.tightest = summary.tightest.max(thousandths);
            if waited > patience {
                violations.push(Violation::NobodyServed { from, until, patience });
            }
        }
    }
}

fn changes(
    events: &[Event],
    beliefs: impl Iterator<Item = (Instant, Instant)>,
) -> Vec<(Instant, Change)> {
    let mut changes = Vec::new();
    let mut waiting: BTreeMap<u64, Instant> = BTreeMap::new();
    for event in events {
        match *event {
            Event::Asked { worker, at } => {
                waiting.insert(worker, at);
            }
            Event::Granted { worker, granted_at: at, .. } | Event::GaveUp { worker, at } => {
                let since = waiting.remove(&worker);
                changes.extend(since.into_iter().flat_map(|since| waited(since, at)));
            }
            Event::Unpolled { worker, from, until, .. } => {
                let since = waiting.get_mut(&worker).map(|since| std::mem::replace(since, until));
                changes.extend(since.into_iter().flat_map(|since| waited(since, from)));
            }
            _ => {}
        }
    }
    // One that is not told of again waits for ever.
    changes.extend(waiting.into_values().map(|since| (since, Change::WaiterCame)));
    for (from, until) in beliefs.filter(|(from, until)| from < until) {
        changes.push((from, Change::BelieverCame));
        changes.push((until, Change::BelieverWent));
    }
    changes.sort();
    changes
}

/// A worker waited from one instant to another; not at all if it went before it was polled again.
fn waited(from: Instant, until: Instant) -> impl Iterator<Item = (Instant, Change)> {
    let both = [(from, Change::WaiterCame), (until, Change::WaiterWent)];
    both.into_iter().filter(move |_| from < until)
}

/// The times in which a grant was kept for a task that was woken and not polled.
fn unpolled(events: &[Event]) -> impl Iterator<Item = (Instant, Instant)> {
    let grants = grants(events);
    let times = events.iter().filter_map(|event| match *event {
        Event::Unpolled { runtime, from, until, claim_window, .. } => {
            Some((runtime, from, until, claim_window))
        }
        _ => None,
    });
    times.flat_map(move |(runtime, from, until, claim_window)| {
        let of_runtime = grants.iter().filter(move |grant| grant.id.runtime() == runtime);
        let times = of_runtime.map(move |grant| {
            let from = grant.from.max(from);
            (from, grant.until.min(until).min(from + claim_window))
        });
        times.collect::<Vec<_>>()
    })
}

/// A grant, until the server ended it or made another.
struct Grant {
    id: AcquisitionId,
    from: Instant,
    until: Instant,
}

fn grants(events: &[Event]) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for event in events {
        let Event::Spied { at, deed } = *event else { continue };
        let ends = |grant: &Grant| match deed {
            Deed::Minted { .. } | Deed::Forced { .. } | Deed::Forgot => true,
            Deed::PartLost { part } => part == Part::Lock,
            Deed::Ended { id, .. } | Deed::Withdrawn { id } => id == grant.id,
            _ => false,
        };
        if let Some(last) = grants.last_mut().filter(|last| ends(last)) {
            last.until = last.until.min(at);
        }
        if let Deed::Minted { id, .. } = deed {
            grants.push(Grant { id, from: at, until: Instant::at(Duration::MAX) });
        }
    }
    grants
}

fn gaps(changes: Vec<(Instant, Change)>) -> Vec<Gap> {
    let (mut waiters, mut believers, mut gaps, mut open) = (0_usize, 0_usize, Vec::new(), None);
    for (at, change) in changes {
        match change {
            Change::BelieverCame => believers += 1,
            Change::WaiterCame => waiters += 1,
            Change::WaiterWent => waiters = waiters.saturating_sub(1),
            Change::BelieverWent => believers = believers.saturating_sub(1),
        }
        match (waiters > 0 && believers == 0, open) {
            (true, None) => open = Some(at),
            (false, Some(from)) => {
                gaps.push(Gap { from, until: at });
                open = None;
            }
            _ => {}
        }
    }
    let end = Instant::at(Duration::MAX);
    gaps.extend(open.map(|from| Gap { from, until: end }));
    gaps
}
