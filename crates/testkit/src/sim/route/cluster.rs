use std::collections::BTreeSet;

use leasehold_core::{Clock, Instant, LockName, StoreError};
use leasehold_redis::{
    seam::{Choice, Learnt, Probe, RedirectPolicy},
    slot_of_lock,
};

use super::router::{LONGEST_LOOK, Router, not_found};
use crate::sim::{
    network::{About, Told},
    servers::{node_at, place_of},
    trace::Step,
};

/// A Cluster: a lock is on the master that owns its slot, as far as the process knows.
impl Router {
    /// The owner of a slot.
    pub(in crate::sim) async fn owner(
        &self,
        slot: u16,
        deadline: Instant,
    ) -> Result<usize, StoreError> {
        let owner = || self.known().owners.of(slot).copied();
        if let Some(owner) = owner() {
            return Ok(owner);
        }
        let look = async {
            let _one_at_a_time = self.dialing[0].lock().await;
            if (self.rules.looks)(owner().is_some()) {
                self.look_for_owners().await
            } else {
                Ok(())
            }
        };
        tokio::select! {
            biased;
            looked = look => looked?,
            () = self.clock.sleep_until(deadline) => {}
        }
        owner().ok_or_else(|| not_found("nobody tells who owns the slot"))
    }

    /// All masters that own a slot, as far as the process knows.
    pub(in crate::sim) async fn masters(
        &self,
        deadline: Instant,
    ) -> Result<Vec<usize>, StoreError> {
        let is_known = || self.known().owners.view().is_some();
        if !is_known() {
            let look = async {
                let _one_at_a_time = self.dialing[0].lock().await;
                if (self.rules.looks)(is_known()) { self.look_for_owners().await } else { Ok(()) }
            };
            tokio::select! {
                biased;
                looked = look => looked?,
                () = self.clock.sleep_until(deadline) => {}
            }
        }
        let known = self.known();
        let view =
            known.owners.view().ok_or_else(|| not_found("nobody tells who owns the slots"))?;
        let masters: BTreeSet<usize> =
            view.owners.iter().map(|(_, place)| node_at(place)).collect();
        Ok(masters.into_iter().collect())
    }

    /// Asks all nodes who owns the slots, and believes one of their views.
    pub(super) async fn look_for_owners(&self) -> Result<(), StoreError> {
        let asked = self.layout.nodes();
        let mut answers = self.ask((0..asked).map(|node| About::Slots { node }));
        let (until, mut told) = (self.clock.now() + LONGEST_LOOK, Vec::new());
        for _ in 0..asked {
            let Some(answer) = self.next(&mut answers, until).await else { break };
            if let Told::Slots { node, view } = answer {
                told.push((place_of(node), view));
            }
        }
        let seeds: Vec<_> = (0..self.layout.seeds()).map(place_of).collect();
        let mut known = self.known();
        let look = Probe {
            seeds: &seeds,
            known: known.owners.view(),
            asked,
            in_vain: 0,
            is_silent: false,
        };
        let (Choice::Take(at) | Choice::Anew(at)) = (self.rules.choose)(&told, look) else {
            return Err(not_found("no node tells what is to be believed"));
        };
        let view = told.swap_remove(at).1;
        self.looks().ends(self.clock.now());
        if (self.rules.settle)(&mut known.owners, &view) {
            let masters = view.owners.iter().map(|(slots, place)| (slots.clone(), node_at(place)));
            let masters = masters.collect();
            let before = known.owners.view().map_or(0, |view| view.owners.len());
            self.looks().believed(self.clock.now(), before, view.owners.len());
            known.owners.replace(view, masters);
        }
        Ok(())
    }

    /// A node has not run a command; whether that is sent again.
    pub(in crate::sim) fn redirected(
        &self,
        course: &mut RedirectPolicy,
        node: usize,
        error: &StoreError,
    ) -> bool {
        let Some(redirect) = (self.rules.redirect)(error, &place_of(node)) else {
            if !error.is_answer() {
                self.hint.notify_one();
            }
            return false;
        };
        match course.redirected(redirect) {
            Learnt::Owner(place) => {
                let (owner, process) = (node_at(&place), self.process);
                self.wire().note(|| Step::Led { process, node: owner });
                (self.rules.moved)(&mut self.known().owners, course.slot(), owner);
                self.hint.notify_one();
                true
            }
            Learnt::Missed => {
                self.hint.notify_one();
                true
            }
            Learnt::Nothing => true,
            Learnt::Stray => false,
        }
    }

    /// Which part of the store a name lives in.
    pub(in crate::sim) fn shard(&self, name: &LockName) -> usize {
        self.known().owners.of(slot_of_lock(name)).copied().unwrap_or(0)
    }

    /// A fraction of a pause, for jitter.
    pub(in crate::sim) fn fraction(&self) -> f64 {
        f64::from(u32::try_from(self.dice.below(1_000)).unwrap_or(0)) / 1_000.0
    }
}
