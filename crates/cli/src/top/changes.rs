use std::{collections::BTreeMap, time::Duration};

use leasehold::{AcquisitionId, LockName};

use super::looks::Look;

/// What has changed from one look to the next; more may have happened between them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Changes {
    /// Locks that have another holder, a second.
    pub(super) hand_overs: f64,
    /// Leases that ran out without a renewal, a second.
    pub(super) losses: f64,
}

/// A lease, as far as changes need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenLease {
    lease: AcquisitionId,
    remaining: Duration,
    kept: bool,
}

/// The leases of a look.
pub(super) fn seen(look: &Look) -> BTreeMap<LockName, SeenLease> {
    let lease = |lock: &leasehold::ListedLock| {
        let lease = &lock.lease;
        let seen = SeenLease { lease: lease.id, remaining: lease.remaining, kept: lease.kept };
        (lock.name.clone(), seen)
    };
    look.locks.iter().map(lease).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn changes(
    before: &BTreeMap<LockName, SeenLease>,
    after: &BTreeMap<LockName, SeenLease>,
    between: Duration,
) -> Changes {
    let (mut hand_overs, mut losses) = (0_u64, 0_u64);
    for (name, old) in before {
        let new = after.get(name);
        if new.is_some_and(|new| new.lease == old.lease) {
            continue;
        }
        hand_overs += u64::from(new.is_some());
        // One that is kept opens as it should.
        losses += u64::from(!old.kept && old.remaining < between);
    }
    let per_second = |count: u64| count as f64 / between.as_secs_f64().max(0.001);
    Changes { hand_overs: per_second(hand_overs), losses: per_second(losses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(process: u8, left: u64, kept: bool) -> SeenLease {
        let id = format!("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb{process:02}:1");
        SeenLease { lease: id.parse().unwrap(), remaining: Duration::from_secs(left), kept }
    }

    fn seen(locks: &[(&str, SeenLease)]) -> BTreeMap<LockName, SeenLease> {
        locks.iter().map(|(name, seen)| (LockName::new(name).unwrap(), *seen)).collect()
    }

    #[test]
    fn another_holder_is_a_hand_over_and_a_lease_that_ran_out_a_loss() {
        let before = seen(&[
            ("same", lease(1, 30, false)),
            ("passed", lease(1, 30, false)),
            ("given back", lease(1, 30, false)),
            ("ran out", lease(1, 1, false)),
            ("opened", lease(1, 1, true)),
        ]);
        let after = seen(&[
            ("same", lease(1, 29, false)),
            ("passed", lease(2, 30, false)),
            ("new", lease(3, 30, false)),
        ]);
        let expected = Changes { hand_overs: 0.5, losses: 0.5 };
        assert_eq!(changes(&before, &after, Duration::from_secs(2)), expected);
    }
}
