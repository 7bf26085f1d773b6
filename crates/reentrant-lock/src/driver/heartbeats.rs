use std::{collections::BTreeMap, sync::Arc, time::Duration};

use leasehold_core::{
    Instant, LockName, StoreError,
    store::{AcquireAnswer, Waiter},
};
use leasehold_watchdog::Key;
use tokio::{select, task::JoinSet};

use crate::cohort::{Answer, Beat};

use super::{cohorts::Cohorts, commands::unanswered};

/// The task that looks after what waits: heartbeats that fall due, offers that nobody takes.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    cohorts: Arc<Cohorts>,
    /// When heartbeats were sent last.
    sent_at: Instant,
    // Aborted with the task: nothing outlives it.
    in_flight: JoinSet<()>,
}

/// Ends the task when it is dropped.
#[derive(Debug)]
pub(crate) struct HeartbeatsTask(Arc<Cohorts>);

impl Drop for HeartbeatsTask {
    fn drop(&mut self) {
        self.0.agenda.stop();
    }
}

impl Heartbeats {
    /// The most waiters of one command; a store splits it as its scripts need.
    const BATCH: usize = 2048;
    /// The shortest time from one round of heartbeats to the next, so that many names share one.
    const PAUSE: Duration = Duration::from_millis(20);
    /// How far ahead of its time a name is looked at with one that is due.
    const COMPANY: Duration = Duration::from_millis(200);
    /// The longest time without a look.
    const NAP: Duration = Duration::from_secs(5);

    /// Starts the task.
    pub(crate) fn start(cohorts: &Arc<Cohorts>) -> HeartbeatsTask {
        let (cohorts_too, sent_at) = (Arc::clone(cohorts), Instant::default());
        let this = Self { cohorts: cohorts_too, sent_at, in_flight: JoinSet::new() };
        drop(cohorts.shared.runtime.spawn(this.run()));
        HeartbeatsTask(Arc::clone(cohorts))
    }

    async fn run(mut self) {
        let cohorts = Arc::clone(&self.cohorts);
        let (agenda, clock) = (&cohorts.agenda, &cohorts.shared.clock);
        loop {
            let now = clock.now();
            if now >= self.sent_at + Self::PAUSE {
                let Some(due) = agenda.take_due(now, now + Self::COMPANY) else { return };
                self.look_at(now, due);
            } else if agenda.is_stopped() {
                return;
            }
            let until = agenda.sleep_until(clock.now() + Self::NAP);
            let until = until.max(self.sent_at + Self::PAUSE);
            select! {
                biased;
                Some(_) = self.in_flight.join_next(), if !self.in_flight.is_empty() => {}
                () = agenda.changed.notified() => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    fn look_at(&mut self, now: Instant, names: Vec<(Key, LockName)>) {
        let tick = |(key, name): (Key, LockName)| self.cohorts.tick(key, &name);
        let beats: Vec<Beat> = names.into_iter().filter_map(tick).collect();
        if !beats.is_empty() {
            self.sent_at = now;
        }
        for beats in self.alike(beats) {
            let mut beats = beats.into_iter().peekable();
            while beats.peek().is_some() {
                let batch: Vec<Beat> = beats.by_ref().take(Self::BATCH).collect();
                self.in_flight.spawn(Arc::clone(&self.cohorts).beats(batch).drive());
            }
        }
    }

    /// Heartbeats by the time that they have to be answered, which those of one command share: none
    /// has less than half of its own.
    fn alike(&self, beats: Vec<Beat>) -> impl Iterator<Item = Vec<Beat>> + use<> {
        let mut alike = BTreeMap::<u32, Vec<Beat>>::new();
        for beat in beats {
            let time = self.cohorts.shared.place_deadline(beat.waiter.ttl);
            alike.entry(time.as_millis().max(1).ilog2()).or_default().push(beat);
        }
        alike.into_values()
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        // Also when the task panics or its tokio runtime stops: nobody asks for them any more.
        self.cohorts.close();
    }
}

impl Cohorts {
    fn tick(&self, key: Key, name: &LockName) -> Option<Beat> {
        let beat = self.with(name, |member, m| {
            member.keeps_appointment(key);
            member.cohort.tick(m)
        });
        beat.flatten()
    }

    /// Makes heartbeats ready to be sent.
    pub(super) fn beats(self: Arc<Self>, beats: impl IntoIterator<Item = Beat>) -> Beats {
        let mut beats: Vec<Beat> = beats.into_iter().collect();
        for Beat { waiter, sent_at } in &mut beats {
            waiter.watermark = self.shared.watermarks.of(*sent_at, &waiter.name);
        }
        Beats { cohorts: self, beats }
    }

    fn heard_back(&self, beat: &Beat, result: Result<AcquireAnswer, StoreError>) {
        let Waiter { name, id, .. } = &beat.waiter;
        if let Ok(AcquireAnswer::Granted(granted)) = &result {
            self.saw(name, granted);
        }
        if let Err(error) = &result {
            self.shared.metrics.store().error(error.kind());
        }
        let answer = Answer { sent_at: beat.sent_at, result };
        // Also where nobody waits any more: a grant that finds no task is taken back.
        let metrics = self.shared.metrics.class(&leasehold_core::Class::default());
        self.with_new(name, &metrics, |member, m| ((), member.cohort.heard(m, *id, answer)));
    }
}

/// Heartbeats on their way; those that are dropped before count as unanswered.
#[derive(Debug)]
pub(super) struct Beats {
    cohorts: Arc<Cohorts>,
    beats: Vec<Beat>,
}

impl Beats {
    pub(super) async fn drive(mut self) {
        let shared = &self.cohorts.shared;
        let waiters: Vec<Waiter> = self.beats.iter().map(|beat| beat.waiter.clone()).collect();
        let timeout = |beat: &Beat| shared.place_deadline(beat.waiter.ttl);
        let Some(shortest) = self.beats.iter().map(timeout).min() else { return };
        let deadline = shared.clock.now() + shortest;
        let answers = shared.store.heartbeat(&waiters, &shared.label, deadline).await;
        let beats = std::mem::take(&mut self.beats);
        match answers {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for beat in &beats {
                    let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
                    self.cohorts.heard_back(beat, answer);
                }
            }
            Err(error) => {
                for beat in &beats {
                    self.cohorts.heard_back(beat, Err(error.clone()));
                }
            }
        }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        for beat in &self.beats {
            self.cohorts.heard_back(beat, Err(unanswered()));
        }
    }
}
