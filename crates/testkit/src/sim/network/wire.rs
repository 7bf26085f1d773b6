use std::{collections::BTreeMap, fmt, time::Duration};

use leasehold_core::{Clock, Instant};

use super::{end::End, letter::Happening};
use crate::{
    ManualClock,
    sim::{
        dice::Dice,
        mishap::{Mishap, Mishaps},
        servers::Layout,
        spy::Spy,
        trace::{Step, Trace},
        weather::Weather,
    },
};

/// Things that do not overtake follow each other at least this closely.
pub(super) const APART: Duration = Duration::from_nanos(1);

/// Everything that is on its way between processes and the server.
pub(in crate::sim) struct Wire {
    pub(super) clock: ManualClock,
    pub(super) dice: Dice,
    pub(in crate::sim) weather: Weather,
    pub(in crate::sim) spy: Spy,
    pub(in crate::sim) trace: Trace,
    pub(super) mishaps: Mishaps,
    pub(super) happenings: BTreeMap<(Instant, u64), Happening>,
    pub(super) ends: Vec<End>,
    /// How many servers there are.
    nodes: usize,
    /// Whether what one server publishes reaches those who listen at another.
    pub(super) is_cluster: bool,
    happened: u64,
    pub(super) calls: u64,
}

impl Wire {
    pub(in crate::sim) fn new(
        clock: ManualClock,
        dice: Dice,
        spy: Spy,
        trace: Trace,
        layout: &Layout,
    ) -> Self {
        let (happenings, ends) = (BTreeMap::new(), Vec::new());
        let (weather, mishaps) = (Weather::calm(), Mishaps::default());
        let (nodes, is_cluster) = (layout.nodes(), matches!(layout, Layout::Cluster { .. }));
        let (happened, calls) = (0, 0);
        Self {
            clock,
            dice,
            weather,
            spy,
            trace,
            mishaps,
            happenings,
            ends,
            nodes,
            is_cluster,
            happened,
            calls,
        }
    }

    /// Connects one more process.
    pub(in crate::sim) fn connect(&mut self) -> usize {
        let lanes = vec![Default::default(); self.nodes];
        self.ends.push(End { lanes, ..End::default() });
        self.ends.len() - 1
    }

    pub(in crate::sim) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(in crate::sim) fn note(&mut self, step: impl FnOnce() -> Step) {
        let now = self.now();
        self.trace.add(now, step);
    }

    /// Nothing goes to or comes from a process for a while.
    pub(in crate::sim) fn cut(&mut self, process: usize, until: Instant) {
        self.note(|| Step::Cut { process, until });
        let end = &mut self.ends[process];
        end.cut_until = end.cut_until.max(until);
        if self.dice.below(2) == 0 {
            self.unsubscribe(process);
        }
    }

    /// Something is to go wrong with one message.
    pub(in crate::sim) fn mishap(&mut self, mishap: Mishap) {
        self.mishaps.add(mishap);
    }

    /// What a process sends goes to a replica until an instant.
    pub(in crate::sim) fn mislead(&mut self, process: usize, until: Instant) {
        self.note(|| Step::Misled { process, until });
        let end = &mut self.ends[process];
        end.misled_until = end.misled_until.max(until);
    }

    /// Whether what a process sends goes to a replica.
    pub(in crate::sim) fn is_misled(&self, process: usize) -> bool {
        self.now() < self.ends[process].misled_until
    }

    /// A process is no more; what it sent is on its way.
    pub(in crate::sim) fn crash(&mut self, process: usize) {
        self.note(|| Step::Crashed { process });
        let end = &mut self.ends[process];
        (end.dead, end.subscribed) = (true, None);
    }

    pub(in crate::sim) fn schedule(&mut self, at: Instant, happening: Happening) {
        self.happened += 1;
        self.happenings.insert((at, self.happened), happening);
    }

    pub(in crate::sim) fn next_happening(&self) -> Option<Instant> {
        self.happenings.keys().next().map(|(at, _)| *at)
    }

    /// What is due, unless its process is cut off: then it is lost, or comes after that.
    pub(in crate::sim) fn take_due(&mut self) -> Option<Happening> {
        let now = self.now();
        loop {
            let entry = self.happenings.first_entry().filter(|entry| entry.key().0 <= now)?;
            let happening = entry.remove();
            let cut_until = happening.process().map(|process| self.ends[process].cut_until);
            let Some(until) = cut_until.filter(|until| *until > now) else {
                return Some(happening);
            };
            if matches!(happening, Happening::Subscription { .. }) || self.dice.below(2) == 0 {
                self.schedule(until + self.weather.delay(&self.dice), happening);
            }
        }
    }

    /// Ends all cuts and mishaps, and lets everything that is on its way arrive soon, in the same
    /// order.
    pub(in crate::sim) fn clear_up(&mut self, by: Duration) {
        self.weather = Weather::calm();
        self.mishaps.clear();
        let latest = self.now() + by;
        for end in &mut self.ends {
            (end.cut_until, end.misled_until) = (Instant::default(), Instant::default());
            end.pushes_until = end.pushes_until.min(latest);
            for connection in end.lanes.iter_mut().flatten() {
                connection.there_until = connection.there_until.min(latest);
                connection.back_until = connection.back_until.min(latest);
            }
        }
        let happenings = std::mem::take(&mut self.happenings);
        for ((at, number), happening) in happenings {
            self.happenings.insert((at.min(latest), number), happening);
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("weather", &self.weather)
            .field("on_the_way", &self.happenings.len())
            .finish_non_exhaustive()
    }
}
