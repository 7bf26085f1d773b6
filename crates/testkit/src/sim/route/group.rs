use leasehold_core::{Clock, Instant, StoreError};
use leasehold_redis::{MasterVerdict, seam::FoundMaster};

use super::router::{Dialed, LONGEST_LOOK, Router, not_found};
use crate::sim::{
    network::{About, Lane, Told},
    servers::{Layout, node_at, place_of},
    trace::Step,
};

/// A group of servers: the master is the one that most Sentinels name, and that says it is one.
impl Router {
    /// A connection to the master, made anew where there is none.
    pub(in crate::sim) async fn reach(
        &self,
        number: usize,
        deadline: Instant,
    ) -> Result<(Lane, u64), StoreError> {
        if let Some(Dialed { lane, epoch }) = self.present(number) {
            return Ok((lane, epoch));
        }
        tokio::select! {
            biased;
            dialed = self.dial(number) => dialed,
            () = self.clock.sleep_until(deadline) => Err(not_found("no connection was made in time")),
        }
    }

    fn present(&self, number: usize) -> Option<Dialed> {
        let (dialed, epoch) = {
            let known = self.known();
            (known.dialed[number]?, known.epoch)
        };
        let lane = self.wire().lane(self.process, dialed.lane.node, number);
        let is_fresh = (self.rules.is_fresh)(dialed.epoch == epoch);
        if !is_fresh {
            self.wire().give_up(dialed.lane);
        }
        (is_fresh && lane == dialed.lane).then_some(dialed)
    }

    async fn dial(&self, number: usize) -> Result<(Lane, u64), StoreError> {
        let _one_at_a_time = self.dialing[number].lock().await;
        if let Some(Dialed { lane, epoch }) = self.present(number) {
            return Ok((lane, epoch));
        }
        let (node, epoch) = self.look_for_master().await?;
        let mut answers = self.ask([About::Role { node }]);
        let until = self.clock.now() + LONGEST_LOOK;
        match self.next(&mut answers, until).await {
            Some(Told::Role(true)) => {}
            Some(Told::Role(false)) => return Err(not_found("the server is a replica")),
            _ => return Err(not_found("the server does not answer")),
        }
        let lane = self.wire().lane(self.process, node, number);
        self.known().dialed[number] = Some(Dialed { lane, epoch });
        Ok((lane, epoch))
    }

    /// Asks all Sentinels side by side, until enough have answered.
    pub(super) async fn look_for_master(&self) -> Result<(usize, u64), StoreError> {
        let look = {
            let mut known = self.known();
            known.looks += 1;
            known.looks
        };
        let listed = Layout::SENTINELS;
        let mut asked = self.ask((0..listed).map(|sentinel| About::Master { sentinel }));
        let (until, mut answers) = (self.clock.now() + LONGEST_LOOK, Vec::new());
        while answers.len() < listed {
            let Some(told) = self.next(&mut asked, until).await else { break };
            let Told::Master(place) = told else { continue };
            answers.push(Some(place));
            if let MasterVerdict::Named(place) = (self.rules.decide)(&answers, listed, None) {
                return Ok(self.settle(look, node_at(&place)));
            }
        }
        let last = self.known().found.as_ref().map(|found| found.endpoint.clone());
        match (self.rules.decide)(&answers, listed, last.as_ref()) {
            MasterVerdict::Named(place) => Ok(self.settle(look, node_at(&place))),
            _ => Err(not_found("too few Sentinels name one master")),
        }
    }

    fn settle(&self, look: u64, node: usize) -> (usize, u64) {
        self.has_found(node);
        let mut known = self.known();
        let is_first = known.found.is_none();
        if FoundMaster::note(&mut known.found, look, &place_of(node)) {
            known.epoch += 1;
            let (epoch, process) = (known.epoch, self.process);
            drop(known);
            let mut wire = self.wire();
            wire.note(|| Step::Led { process, node });
            if !is_first && !(self.rules.is_fresh)(false) {
                wire.unsubscribe(process);
            }
            drop(wire);
            self.switched.notify_waiters();
            return (node, epoch);
        }
        let node = known.found.as_ref().map_or(node, |found| node_at(&found.endpoint));
        (node, known.epoch)
    }

    /// Returns when the master is another one than in an epoch.
    pub(in crate::sim) async fn left(&self, epoch: u64) {
        loop {
            let switched = self.switched.notified();
            if !(self.rules.is_fresh)(self.known().epoch == epoch) {
                return;
            }
            switched.await;
        }
    }

    /// Where the process would subscribe.
    pub(in crate::sim) fn master(&self) -> Option<usize> {
        self.known().found.as_ref().map(|found| node_at(&found.endpoint))
    }

    /// A server said that it is a replica: the connection is given up.
    pub(in crate::sim) fn refused(&self, lane: Lane) {
        self.wire().give_up(lane);
        self.hint.notify_one();
    }
}
