use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::{AcquisitionId, Instant, RuntimeId, seam::Part};

use super::{blocks::Blocks, deed::Deed, event::Event, violation::Violation};

/// A place in the queue, as far as a spy can know it.
#[derive(Debug, Clone, Copy)]
struct Place {
    id: AcquisitionId,
    /// The place came no earlier than this in the order of deeds.
    earliest: usize,
    /// The place came no later than this in the order of deeds.
    latest: usize,
    live_until: Instant,
}

/// The queue of a name, rebuilt from the answers of the server.
#[derive(Debug, Default)]
struct Queue {
    places: BTreeMap<RuntimeId, Place>,
    /// Acquisitions that their runtimes were done with.
    spent: BTreeSet<AcquisitionId>,
    /// The last acquisition that each runtime asked for; places of others are ghosts.
    last: BTreeMap<RuntimeId, AcquisitionId>,
    /// Live places whose runtimes ask anew: that is right where a withdrawal follows.
    given_up: BTreeMap<AcquisitionId, (AcquisitionId, Instant)>,
    /// Acquisitions of which a master knew that was replaced, and when the present one took over:
    /// it may have their places.
    inherited: BTreeMap<AcquisitionId, usize>,
    heard: BTreeSet<AcquisitionId>,
}

/// Checks that no grant passes over a live place that was there before the grantee's, and that no
/// runtime asks anew while it has a live place.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    let mut queue = Queue::default();
    for (now, event) in events.iter().enumerate() {
        if let Event::Granted { lease, fence, .. } = *event {
            queue.spent.extend(blocks.of(lease.runtime(), fence).map(|block| block.id));
        }
        let Event::Spied { at, deed } = *event else { continue };
        match deed {
            Deed::Queued { id, live_until, refreshed } => {
                queue.hear(now, at, id, live_until, refreshed);
            }
            Deed::Minted { id, .. } => {
                violations.extend(queue.passed_over(now, at, id));
                queue.serve(id);
            }
            Deed::Superseded { by } => queue.supersede(by),
            // Its runtime may have begun the turn, without a lease of it in a task's hands.
            Deed::Forced { first } => {
                let ended = blocks.iter().filter(|block| block.first == first);
                queue.spent.extend(ended.map(|block| block.id));
            }
            Deed::Withdrawn { id } => queue.leave(id),
            Deed::Forgot | Deed::PartLost { part: Part::Queue | Part::Waiters } => {
                queue.places.clear();
            }
            Deed::TookOver { is_behind: true, .. } => queue.pass_on(now),
            Deed::WithdrawSent { id } | Deed::ReleaseSent { id, .. } => {
                queue.spent.insert(id);
                queue.given_up.remove(&id);
            }
            Deed::Crashed { runtime } => {
                queue.given_up.retain(|id, _| id.runtime() != runtime);
            }
            Deed::AskSent { id } => queue.asks(at, id),
            _ => {}
        }
    }
    for (id, (asks, at)) in queue.given_up {
        violations.push(Violation::PlaceGivenUp { id, asks, at });
    }
}

impl Queue {
    fn hear(
        &mut self,
        now: usize,
        at: Instant,
        id: AcquisitionId,
        live_until: Instant,
        refreshed: bool,
    ) {
        self.heard.insert(id);
        let earliest = self.inherited.get(&id).copied().unwrap_or(now);
        let fresh = Place { id, earliest, latest: now, live_until };
        let is_known = self.places.get(&id.runtime()).is_some_and(|place| place.id == id);
        if !refreshed && !is_known && self.inherited.contains_key(&id) {
            // The place is an old one, and for how long it lives is not known.
            self.places.remove(&id.runtime());
            return;
        }
        let place = self.places.entry(id.runtime()).or_insert(fresh);
        if place.id != id {
            // Replaced; or it was dead and removed unseen, and this is a ghost of an older one.
            *place = fresh;
            return;
        }
        if !refreshed {
            return;
        }
        if at > place.live_until {
            // Nobody heard of it for too long: it may have been removed, and made anew.
            place.latest = now;
        }
        place.live_until = place.live_until.max(live_until);
    }

    /// Another server has an older queue, with places of those that were heard of.
    fn pass_on(&mut self, now: usize) {
        self.places.clear();
        self.inherited = self.heard.iter().map(|id| (*id, now)).collect();
    }

    fn passed_over(&self, now: usize, at: Instant, granted: AcquisitionId) -> Option<Violation> {
        let own = self.places.get(&granted.runtime()).filter(|own| own.id == granted);
        let unseen = self.inherited.get(&granted).copied().unwrap_or(now);
        let came = own.map_or(unseen, |own| own.earliest);
        let before =
            |place: &&Place| place.id.runtime() != granted.runtime() && place.latest < came;
        let live = |place: &&Place| at < place.live_until;
        let waiting = self.places.values().filter(before).find(live)?.id;
        Some(Violation::PassedOver { granted, waiting, at })
    }

    /// A runtime asks, perhaps although it has a live place that nothing ended.
    fn asks(&mut self, at: Instant, asks: AcquisitionId) {
        let last = self.last.insert(asks.runtime(), asks);
        let Some(place) = self.places.get(&asks.runtime()) else { return };
        let wanted = last == Some(place.id) && !self.spent.contains(&place.id);
        if wanted && at < place.live_until && place.id < asks {
            self.given_up.entry(place.id).or_insert((asks, at));
        }
    }

    fn serve(&mut self, id: AcquisitionId) {
        if self.places.get(&id.runtime()).is_some_and(|place| place.id.number() <= id.number()) {
            self.places.remove(&id.runtime());
        }
    }

    fn supersede(&mut self, by: AcquisitionId) {
        if self.places.get(&by.runtime()).is_some_and(|place| place.id.number() < by.number()) {
            self.places.remove(&by.runtime());
        }
    }

    fn leave(&mut self, id: AcquisitionId) {
        if self.places.get(&id.runtime()).is_some_and(|place| place.id == id) {
            self.places.remove(&id.runtime());
        }
    }
}
