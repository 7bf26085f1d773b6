//! A server of a majority that comes back without a lease that it has granted.

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{Patience, QuorumGroup};

use super::scene::{self, LONG, NAME, TRIES};
use crate::{
    faults::{
        failover::overlap,
        server::scene::{connect, run, take},
    },
    support::wait,
};

/// How a server comes back without its last lease.
pub(super) struct Loss {
    /// Before anything is granted.
    pub(super) prepare: fn(&QuorumGroup),
    /// When a server has granted something.
    pub(super) lose: fn(&QuorumGroup, usize),
}

/// Takes the lock for one ttl. A renewal might bring the lease to a third server, or be refused there: others have
/// asked it.
async fn hold(locks: &LockRuntime) -> Guard {
    let acquiring = locks.lock(NAME).expect("a name").acquire().renew(false).wait(wait::CEILING);
    wait::soon("a lease", acquiring).await.expect("a lease")
}

/// Nobody else gets the lock of a holder whose lease one server has forgotten.
pub(super) fn stays_out(loss: &Loss) -> String {
    run(async {
        let group = scene::group(3);
        (loss.prepare)(&group);
        let [locks, other] = [connect(&group.url(), LONG).await, connect(&group.url(), LONG).await];
        let guard = hold(&locks).await;
        let had_it = scene::holding(&group, guard.id());
        (loss.lose)(&group, had_it[0]);
        assert!(!scene::holding(&group, guard.id()).contains(&had_it[0]), "it lost nothing");
        for _ in 0..TRIES {
            let got = scene::try_for(&other).await;
            assert!(got.is_none(), "{got:?} has it beside {guard:?}");
        }
        assert!(guard.is_held(), "it holds the lock no more: {:?}", guard.lost().await);
        // The others are a majority, and go on.
        take(&other, "another").await.release().await.expect("held to the end");
        let fence = guard.fence();
        guard.release().await.expect("held to the end");
        let next = take(&other, NAME).await;
        assert!(next.fence() > fence, "{next:?}");
        assert!(!scene::holding(&group, next.id()).contains(&had_it[0]), "it granted something");
        next.release().await.expect("held to the end");
        format!("{TRIES} tries got nothing; the two others went on under greater fences")
    })
}

/// The same with a server that votes at once.
pub(super) fn votes_at_once(loss: &Loss) -> String {
    run(async {
        let group = scene::group(3);
        (loss.prepare)(&group);
        let [locks, other] = [connect(&group.url(), LONG).await, connect(&group.url(), LONG).await];
        let guard = hold(&locks).await;
        let had_it = scene::holding(&group, guard.id());
        // A slow server may have had a third one asked, which has the lease, too: one that has it is left.
        had_it[1..].iter().for_each(|server| (loss.lose)(&group, *server));
        group.let_vote();
        // Tries, as those who wait come after seconds.
        let trying = || scene::try_for(&other);
        let next = Patience::of(wait::CEILING).until_async(trying).await.expect("two leases");
        format!("two holders believed for {} ms at least", overlap::of(&guard, &next).as_millis())
    })
}
