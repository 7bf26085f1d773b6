use std::time::Duration;

use leasehold_core::{Instant, store::Inspection};

use super::{
    servers::{Layout, News, Promotion, State},
    trace::Step,
    world::{World, lock},
};
use crate::history::Deed;

/// What becomes of a master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fall {
    /// It is gone.
    Dies,
    /// It is stopped, and what is sent to it waits in its sockets.
    Sleeps,
    /// Its Sentinels and replicas do not hear it any more, but for one of several replicas;
    /// processes do.
    IsCutOff,
}

/// How much longer than its clock is behind the outage has to be before a server takes over.
const UNSURE: Duration = Duration::from_millis(2);

/// What nobody stands by any more of what a master has granted, once it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forsaken {
    /// Of none: replicas have acknowledged each that was believed.
    Nothing,
    /// Of locks about which writes were lost.
    Lost,
    /// Of all: it goes on beside its successor.
    Everything,
}

/// Masters that fall, and replicas that take over.
impl World {
    /// What the master writes does not arrive at its replicas before an instant.
    pub fn stall(&mut self, until: Instant) {
        self.note(|| Step::Note(format!("replicas lag until {until:?}")));
        lock(&self.fleet).stall(until);
    }

    /// The master of the group falls.
    pub fn fall(&mut self, fall: Fall) {
        self.note(|| Step::Note(format!("the master {fall:?}")));
        let mut fleet = lock(&self.fleet);
        let master = fleet.master();
        fleet.nodes[master].state = match fall {
            Fall::Dies => State::Dead,
            Fall::Sleeps => State::Asleep,
            Fall::IsCutOff => State::Awake,
        };
        if fall == Fall::IsCutOff {
            let replicas = fleet.replicas();
            let is_alone = replicas.len() < 2 || self.dice.below(2) == 0;
            let beside = (!is_alone).then(|| self.dice.pick(&replicas));
            fleet.cut_off(master, beside);
        }
        drop(fleet);
        if fall == Fall::Dies {
            self.end_waits(master);
            lock(&self.wire).hang_up(master);
        }
    }

    /// A server that sleeps goes on with what lies in its sockets.
    pub fn wake(&mut self) {
        let now = self.now();
        let mut fleet = lock(&self.fleet);
        for node in fleet.nodes.iter_mut().filter(|node| node.state == State::Asleep) {
            node.state = State::Awake;
            let mut wire = lock(&self.wire);
            for happening in node.sockets.drain(..) {
                wire.schedule(now, happening);
            }
        }
    }

    /// A replica becomes the master: the one that is furthest, or any of them. Each Sentinel hears
    /// of it within `slowness`.
    pub fn promote(&mut self, is_any: bool, slowness: Duration, forsaken: Forsaken) {
        let (now, mut fleet) = (self.now(), lock(&self.fleet));
        let replicas = fleet.replicas();
        let (Some(furthest), false) = (fleet.furthest(), replicas.is_empty()) else { return };
        let new = if is_any { self.dice.pick(&replicas) } else { furthest };
        let promotion = fleet.promote(new);
        let layout = fleet.layout.clone();
        // A clock that is ahead ends leases early.
        let is_ahead = layout.behind(new) < layout.behind(promotion.old);
        let others: Vec<usize> = replicas.into_iter().filter(|other| *other != new).collect();
        drop(fleet);
        self.note(|| Step::Note(format!("{promotion:?}")));
        let unsure = layout.behind(new).saturating_sub(layout.behind(promotion.old)) + UNSURE;
        self.tell_of(now, &promotion, is_ahead, |is_behind| match forsaken {
            Forsaken::Nothing => None,
            Forsaken::Lost => is_behind.then_some(Duration::ZERO),
            Forsaken::Everything => Some(unsure),
        });
        self.routers.iter().for_each(|router| router.forget_seen());
        let mut wire = lock(&self.wire);
        for sentinel in 0..Layout::SENTINELS {
            let after = self.dice.spread(Duration::from_micros(1), slowness);
            wire.spread(News::Promoted { sentinel, master: new }, after);
        }
        for replica in others {
            let after = self.dice.spread(Duration::from_micros(1), slowness + layout.lag());
            wire.spread(News::Follow { replica }, after);
        }
    }

    fn tell_of(
        &self,
        now: Instant,
        promotion: &Promotion,
        is_ahead: bool,
        forsakes: impl Fn(bool) -> Option<Duration>,
    ) {
        let fleet = lock(&self.fleet);
        for (name, is_behind) in &promotion.names {
            let stands = match fleet.nodes[promotion.new].server.inspect(name) {
                Inspection::Held(record) => Some((record.id, record.fence)),
                Inspection::Free { .. } => None,
            };
            let is_behind = *is_behind || is_ahead;
            let forsakes = forsakes(is_behind);
            self.spy.about(now, name, Deed::TookOver { stands, is_behind, forsakes });
        }
    }

    /// The master that was replaced comes back as a replica.
    pub fn rejoin(&mut self) {
        let (now, mut fleet) = (self.now(), lock(&self.fleet));
        let master = fleet.master();
        let is_old = |node: &usize| {
            *node != master
                && (fleet.nodes[*node].is_master || fleet.nodes[*node].state != State::Awake)
        };
        let old: Vec<usize> = (0..fleet.nodes.len()).filter(is_old).collect();
        if let Some(beside) = fleet.beside() {
            fleet.follow(beside, now);
        }
        for node in &old {
            fleet.nodes[*node].sockets.clear();
            fleet.follow(*node, now);
        }
        drop(fleet);
        for node in old {
            self.note(|| Step::Note(format!("{node} is a replica")));
            self.end_waits(node);
            lock(&self.wire).hang_up(node);
        }
    }
}
