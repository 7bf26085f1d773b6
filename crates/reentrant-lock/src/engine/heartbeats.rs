use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use leasehold_core::{Clock, Instant, LONGEST_NAP};
use leasehold_watchdog::Key;
use tokio::{select, task::JoinSet};

use crate::{
    durations::{AHEAD, PLACE_PAUSE},
    queue::Beat,
};

use super::{
    core::Engine,
    names::{Agenda, Side},
};

/// The task that looks at a name when something is due for it.
#[derive(Debug)]
pub(super) struct HeartbeatTask {
    // The task does not keep the engine alive.
    engine: Weak<Engine>,
    agenda: Arc<Agenda>,
    clock: Arc<dyn Clock>,
    sent_at: Instant,
    // Aborted with the task: nothing outlives it.
    in_flight: JoinSet<()>,
}

impl HeartbeatTask {
    const BATCH: usize = 2048;

    pub(super) fn start(engine: &Arc<Engine>) {
        let (agenda, clock) = (Arc::clone(&engine.names.agenda), Arc::clone(&engine.clock));
        let (sent_at, in_flight) = (Instant::default(), JoinSet::new());
        let heartbeats = Self { engine: Arc::downgrade(engine), agenda, clock, sent_at, in_flight };
        engine.spawn(heartbeats.run());
    }

    async fn run(mut self) {
        let (agenda, clock) = (Arc::clone(&self.agenda), Arc::clone(&self.clock));
        loop {
            let now = clock.now();
            // A block of its own: the engine is not held over the wait.
            {
                let Some(engine) = self.engine.upgrade() else { return };
                if now >= self.sent_at + PLACE_PAUSE {
                    let mut beats = look_at(&engine, agenda.take_due(now));
                    // Not else: many idle turns may end one after the other, and each look costs.
                    if !beats.is_empty() {
                        beats.extend(look_at(&engine, agenda.take_due(now + AHEAD)));
                        self.send(&engine, now, beats);
                    }
                }
            }
            let now = clock.now();
            let until = agenda.sleep_until(now, now + LONGEST_NAP);
            let until = until.max(self.sent_at + PLACE_PAUSE);
            select! {
                biased;
                Some(_) = self.in_flight.join_next(), if !self.in_flight.is_empty() => {}
                () = agenda.changed.notified() => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    fn send(&mut self, engine: &Arc<Engine>, now: Instant, beats: Vec<Beat>) {
        self.sent_at = now;
        // One command goes to one part of the store, and has one deadline. Grouped by powers of two
        // of their time: no heartbeat gets less than half of it.
        let mut alike = BTreeMap::<(usize, u32), Vec<Beat>>::new();
        for beat in beats {
            let shard = engine.store.shard(&beat.waiter.name);
            let time = engine.place_deadline(beat.waiter.ttl).as_millis().max(1).ilog2();
            alike.entry((shard, time)).or_default().push(beat);
        }
        for beats in alike.into_values() {
            let mut beats = beats.into_iter().peekable();
            while beats.peek().is_some() {
                let batch: Vec<Beat> = beats.by_ref().take(Self::BATCH).collect();
                self.in_flight.spawn(Arc::clone(engine).beat(batch));
            }
        }
    }
}

impl Drop for HeartbeatTask {
    fn drop(&mut self) {
        // Also when the task panics or its tokio runtime stops: no place is kept any more.
        if let Some(engine) = self.engine.upgrade() {
            engine.close();
        }
    }
}

/// Does what is due for some names; yields the heartbeats that are to be sent.
fn look_at(engine: &Engine, names: Vec<(Key, Side)>) -> Vec<Beat> {
    let look = |(key, (name, mode)): (Key, Side)| {
        let beat = engine.with(&name, mode, |entry, env| {
            entry.scheduled = entry.scheduled.filter(|present| present.key != key);
            entry.state.on_timer(env)
        });
        beat.flatten()
    };
    names.into_iter().filter_map(look).collect()
}
