//! Masters that fail under processes that ask for one replica, and under a holder.
#![expect(clippy::disallowed_methods, reason = "leases are renewed in real time")]

use std::{thread, time::Duration};

use leasehold_testkit::{Patience, history::Summary};

use super::{PLAN, kind::Kind, site::Site, watch::watch};
use crate::support::{
    crew::{Crew, Plan},
    wait,
};

/// So many increments show that work goes on.
const GOES_ON: u64 = 50;

/// Has a master fail that dies or hangs alone, while one task holds the lock, and all others ask for
/// it. The lease lives on at the new master, nobody else enters, and the holder writes in the end.
///
/// The ttl is longer than a failover.
pub(super) fn run(site: &impl Site, kind: Kind, lock: &'static str) -> Summary {
    site.heal();
    let plan = Plan { replicas: 1, ttl: Duration::from_secs(20), ..PLAN.of(lock) };
    let mut crew = Crew::start(&plan, &site.url());
    crew.work(GOES_ON);
    let master = site.master_of(&plan.lease());
    let read = crew.halt(0);

    site.strike(master, kind);
    watch(site, master);
    if kind == Kind::Killed {
        // While it is still named, a master that starts again without its data has no lease.
        let is_followed = || (site.master_of(&plan.lease()) != master).then_some(());
        Patience::of(wait::CEILING).until(is_followed).expect("most servers name another one");
    }
    // The next acknowledgement needs a replica: of some new masters it is the only one.
    site.wake(master, kind);
    // More than one renewal.
    thread::sleep(plan.ttl / 2);
    let written = crew.value() - read;
    crew.resume(0);
    crew.work(GOES_ON);
    let history = crew.finish().history;
    let summary = history.check_strictly().unwrap_or_else(|found| panic!("{kind}: {found:#?}"));
    assert_eq!((summary.lost, summary.refused, written), (0, 0, 0), "{kind}: {summary:?}");
    summary
}
