use std::{thread, time::Duration};

use leasehold::time::{Clock, Instant, SystemClock};
use leasehold_testkit::Event;

use super::{
    kind::Kind,
    site::Site,
    watch::{Seen, watch},
};
use crate::support::{
    crew::{Crew, Finished, Plan},
    unheard,
};

/// So many increments show that work goes on.
const GOES_ON: u64 = 50;

/// One failover while processes were at work.
pub(super) struct Round {
    pub(super) finished: Finished,
    /// The longest time without a grant, from the last one before the failure on.
    pub(super) pause: Duration,
    /// How long after the failure the servers took their master for dead.
    pub(super) noticed: Option<Duration>,
    /// How long after the failure another server was the master.
    pub(super) promoted: Duration,
}

/// Has the master of the lock fail under processes at work, until they have worked on for a while.
///
/// Unless the master is replaced in good order, it takes along the lease of a holder that stands in
/// the midst of its section: that one writes when others have written after it.
pub(super) fn run(site: &impl Site, plan: &Plan, kind: Kind) -> Round {
    site.heal();
    let mut crew = Crew::start(plan, &site.url());
    crew.work(GOES_ON);
    let master = site.master_of(&plan.lease());
    let read = (kind != Kind::Replaced).then(|| {
        site.cut_off_heirs(master);
        unheard::halt(&mut crew, 0, &site.servers()[master], &plan.lease())
    });

    let struck_at = SystemClock.now();
    let seen = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(site, master));
        site.strike(master, kind);
        watching.join().expect("another server takes over")
    });
    if let Some(read) = read {
        site.rejoin_heirs(master);
        crew.until_above(read);
    }
    crew.work(GOES_ON);
    let went_on_at = SystemClock.now();
    if read.is_some() {
        crew.resume(0);
    }
    site.wake(master, kind);
    crew.work(GOES_ON);
    Round::of(crew.finish(), struck_at, went_on_at, seen)
}

impl Round {
    fn of(finished: Finished, struck_at: Instant, went_on_at: Instant, seen: Seen) -> Self {
        let since = |at: Instant| at.saturating_since(struck_at);
        Self {
            pause: pause(&finished, struck_at, went_on_at),
            finished,
            noticed: seen.noticed_at.map(since),
            promoted: since(seen.promoted_at),
        }
    }
}

/// The longest time between two grants, of which the first came before work went on, and the second
/// after the failure.
fn pause(finished: &Finished, struck_at: Instant, went_on_at: Instant) -> Duration {
    let granted_at = |event| match event {
        Event::Granted { granted_at, .. } => Some(granted_at),
        _ => None,
    };
    let mut grants: Vec<Instant> =
        finished.history.events().into_iter().filter_map(granted_at).collect();
    grants.sort_unstable();
    let pairs = grants.windows(2).map(|pair| (pair[0], pair[1]));
    let around = pairs.filter(|(before, after)| *before < went_on_at && *after > struck_at);
    around.map(|(before, after)| after.saturating_since(before)).max().expect("work went on")
}
