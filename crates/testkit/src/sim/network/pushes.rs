use std::{sync::Weak, time::Duration};

use leasehold_core::{
    Instant,
    store::{Listener, Push},
};

use super::{
    letter::Happening,
    wire::{APART, Wire},
};
use crate::sim::{mishap::Fate, trace::Step};

/// How long it takes to subscribe anew.
const RESUBSCRIBE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(200));

/// Subscriptions, and what comes on them.
impl Wire {
    /// A server sends a push, if its process listens there.
    pub(in crate::sim) fn push(&mut self, node: usize, process: usize, push: &Push) {
        let (now, weather) = (self.now(), self.weather);
        let end = &self.ends[process];
        let listens = |at| at == node || self.is_cluster;
        if !end.subscribed.is_some_and(listens) || end.dead {
            self.note(|| Step::Pushed { process, push: push.clone(), fate: "unheard" });
            return;
        }
        if self.dice.chance(weather.unsubscribe) {
            self.unsubscribe(process);
            self.note(|| Step::Pushed { process, push: push.clone(), fate: "unheard" });
            return;
        }
        if self.dice.chance(weather.duplicate_push) {
            let again = now + weather.detour(&self.dice);
            self.schedule(again, Happening::Push { process, push: push.clone() });
        }
        let mishap = self.mishaps.strike_push(now, process);
        let (at, fate) = if let Some(Fate::Late(time)) = mishap {
            (Some(now + time), "late")
        } else if mishap.is_some() || self.dice.chance(weather.lose_push) {
            (None, "lost")
        } else if self.dice.chance(weather.late_push) {
            (Some(now + weather.detour(&self.dice)), "late")
        } else {
            (Some(self.push_arrival(process)), "on its way")
        };
        self.note(|| Step::Pushed { process, push: push.clone(), fate });
        if let Some(at) = at {
            self.schedule(at, Happening::Push { process, push: push.clone() });
        }
    }

    fn push_arrival(&mut self, process: usize) -> Instant {
        let at = self.now() + self.weather.delay(&self.dice);
        let end = &mut self.ends[process];
        let at = at.max(end.pushes_until + APART);
        end.pushes_until = at;
        at
    }

    /// A process wants to listen.
    pub(in crate::sim) fn listen(&mut self, process: usize, listener: Weak<dyn Listener>) {
        self.ends[process].listener = Some(listener);
        let at = self.now() + self.weather.delay(&self.dice);
        self.schedule(at, Happening::Subscription { process });
    }

    pub(in crate::sim) fn listener(&self, process: usize) -> Option<Weak<dyn Listener>> {
        self.ends[process].listener.clone()
    }

    /// The subscription of a process at a server stands from now on, and it hears so.
    pub(in crate::sim) fn subscribe(&mut self, process: usize, node: usize) {
        self.ends[process].subscribed = Some(node);
        self.note(|| Step::Subscribed { process, node });
        let at = self.push_arrival(process);
        self.schedule(at, Happening::Push { process, push: Push::Listening });
    }

    /// The subscription of a process breaks; after a while there is another.
    pub(in crate::sim) fn unsubscribe(&mut self, process: usize) {
        if self.ends[process].subscribed.take().is_none() {
            return;
        }
        self.note(|| Step::Unsubscribed { process });
        self.subscribe_later(process);
    }

    /// A process tries to subscribe a while later.
    pub(in crate::sim) fn subscribe_later(&mut self, process: usize) {
        let at = self.now() + self.dice.spread(RESUBSCRIBE.0, RESUBSCRIBE.1);
        self.schedule(at, Happening::Subscription { process });
    }
}
