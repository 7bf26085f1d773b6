use std::{collections::BTreeMap, time::Duration};

use leasehold::ListedLock;

/// What has changed from one look to the next; more may have happened between them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Changes {
    /// Locks that have another holder, a second.
    pub(super) hand_overs: f64,
    /// Leases that ran out without a renewal, a second.
    pub(super) losses: f64,
}

impl Changes {
    /// Compares the locks of two looks.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn of(before: &[ListedLock], after: &[ListedLock], between: Duration) -> Self {
        let present: BTreeMap<_, _> =
            after.iter().map(|lock| (&lock.name, lock.lease.id)).collect();
        let (mut hand_overs, mut losses) = (0_u64, 0_u64);
        for ListedLock { name, lease, .. } in before {
            let new = present.get(name);
            if new == Some(&lease.id) {
                continue;
            }
            hand_overs += u64::from(new.is_some());
            // One that is kept opens as it should.
            losses += u64::from(!lease.kept && lease.remaining < between);
        }
        let per_second = |count: u64| count as f64 / between.as_secs_f64().max(0.001);
        Self { hand_overs: per_second(hand_overs), losses: per_second(losses) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::lock;

    fn lease(name: &str, process: u8, left: u64, kept: bool) -> ListedLock {
        let mut lock = lock(name, 0, &[]);
        let id = format!("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb{process:02}:1");
        lock.lease.id = id.parse().unwrap();
        (lock.lease.remaining, lock.lease.kept) = (Duration::from_secs(left), kept);
        lock
    }

    #[test]
    fn another_holder_is_a_hand_over_and_a_lease_that_ran_out_a_loss() {
        let before = [
            lease("same", 1, 30, false),
            lease("passed", 1, 30, false),
            lease("given back", 1, 30, false),
            lease("ran out", 1, 1, false),
            lease("opened", 1, 1, true),
        ];
        let after = [
            lease("same", 1, 29, false),
            lease("passed", 2, 30, false),
            lease("new", 3, 30, false),
        ];
        let expected = Changes { hand_overs: 0.5, losses: 0.5 };
        assert_eq!(Changes::of(&before, &after, Duration::from_secs(2)), expected);
    }
}
