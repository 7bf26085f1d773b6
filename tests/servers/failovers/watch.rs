use leasehold::time::{Clock, Instant, SystemClock};
use leasehold_testkit::Patience;

use super::site::Site;
use crate::support::wait;

/// What the servers did by themselves when a master failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// When they took it for dead; `None` if they never did.
    pub(super) noticed_at: Option<Instant>,
    /// When another one was a master by its own account.
    pub(super) promoted_at: Instant,
}

/// Watches the servers until another one is the master.
pub(super) fn watch(site: &impl Site, master: usize) -> Seen {
    let heirs = site.heirs(master);
    let mut noticed_at = None;
    let promoted_at = Patience::of(wait::CEILING).until(|| {
        if noticed_at.is_none() && site.have_noticed(master) {
            noticed_at = Some(SystemClock.now());
        }
        let is_promoted = heirs.iter().any(|heir| site.servers()[*heir].is_master());
        is_promoted.then(|| SystemClock.now())
    });
    Seen { noticed_at, promoted_at: promoted_at.expect("another server takes over") }
}
