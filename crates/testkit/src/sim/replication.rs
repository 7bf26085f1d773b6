use std::time::Duration;

use leasehold_core::{
    LockName, StoreError, StoreErrorKind,
    store::{Command, Push},
};

use super::{
    network::{Happening, Letter, Outcome},
    servers::{Copying, News, State},
    world::{World, lock},
};
use crate::faulty::CommandFacts;

/// The least that writes on their way to a replica are apart.
const APART: Duration = Duration::from_nanos(1);

/// What servers tell each other, and how far it got.
impl World {
    /// Sends what a command has written to the replicas of its server.
    pub(super) fn replicate(&mut self, node: usize, number: u64, command: &Command) {
        let mut fleet = lock(&self.fleet);
        let followers = fleet.followers(node);
        if followers.is_empty() {
            return;
        }
        let rows: Vec<_> = command
            .names()
            .into_iter()
            .map(|name: &LockName| (name.clone(), fleet.nodes[node].server.memory().copy(name)))
            .collect();
        let (lag, mut wire) = (fleet.layout.lag(), lock(&self.wire));
        for (replica, link) in followers {
            let at = wire.now() + wire.lag(lag);
            let at = fleet.arrival(node, replica, at, APART);
            let copying = Copying { master: node, replica, link, number, rows: rows.clone() };
            wire.schedule(at, Happening::News(News::Copy(copying)));
        }
    }

    /// Servers and Sentinels hear what they are told.
    pub(super) fn hear(&mut self, news: News) {
        let (now, mut fleet) = (self.now(), lock(&self.fleet));
        match news {
            News::Copy(copying) => {
                let Copying { master, replica, link, number, .. } = copying;
                if fleet.copy(&copying) {
                    let mut wire = lock(&self.wire);
                    let back = wire.lag(fleet.layout.lag());
                    wire.spread(News::Copied { master, replica, link, number }, back);
                }
            }
            News::Copied { master, replica, link, number } => {
                fleet.acknowledged(master, replica, link, number);
                drop(fleet);
                self.look_at_waits(master);
            }
            News::Waited { master, number } => {
                let waited = fleet.nodes[master].waiting.remove(&number);
                drop(fleet);
                if let Some(waiting) = waited {
                    self.end_wait(master, waiting);
                }
            }
            News::Promoted { sentinel, master } => fleet.name(sentinel, master),
            News::Follow { replica } => fleet.follow(replica, now),
            News::Owner { node, slot, owner, epoch } => fleet.settle(node, slot, owner, epoch),
        }
    }

    /// What happens to a server, unless it sleeps: then it lies in its sockets.
    pub(super) fn unless_asleep(&mut self, happening: Happening) -> Option<Happening> {
        let node = match &happening {
            Happening::Arrival(letter) => Some(letter.lane.node),
            Happening::Question(question) => question.about.node(),
            Happening::News(news) => news.hearer(),
            _ => None,
        };
        let Some(node) = node else { return Some(happening) };
        let mut fleet = lock(&self.fleet);
        match fleet.nodes[node].state {
            State::Awake => Some(happening),
            State::Asleep => {
                fleet.nodes[node].sockets.push(happening);
                None
            }
            State::Dead => match happening {
                Happening::Arrival(letter) => {
                    drop(fleet);
                    self.refuse(letter);
                    None
                }
                Happening::News(_) => None,
                other => Some(other),
            },
        }
    }

    /// Nobody listens where a command arrives.
    fn refuse(&self, letter: Letter) {
        let Letter { lane, call, slot, loses_reply, .. } = letter;
        if let Some(slot) = slot.filter(|_| !loses_reply) {
            let what = "the connection was refused";
            let error = StoreError::new(StoreErrorKind::Indeterminate, what, "try again");
            lock(&self.wire).reply(lane, call, slot, Err(error));
        }
    }

    /// Tells the histories what a server has done. Of one that is a master no more they hear only
    /// what it grants.
    pub(super) fn spy_on(
        &self,
        node: usize,
        command: &Command,
        outcome: &Outcome,
        pushes: &[(usize, Push)],
    ) {
        let (now, fleet) = (self.now(), lock(&self.fleet));
        if fleet.is_cluster() || fleet.master() == node {
            return self.spy.executed(now, command, outcome, pushes);
        }
        let runtimes = lock(&self.runtimes);
        let knew = |runtime| {
            let process = runtimes.iter().position(|known| *known == Some(runtime));
            process.is_some_and(|process| self.routers[process].has_seen(fleet.master()))
        };
        self.spy.executed_aside(now, (command, outcome), pushes, fleet.layout.has_acks(), knew);
    }
}
