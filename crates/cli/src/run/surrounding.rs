use std::env;

use leasehold::{AcquisitionId, Fence, LockName, LockRuntime, Stamp, store::Inspection};

use serde_json::{Value, json};

use super::variables::{AROUND, FENCE, LEASE, LOCK};
use crate::ending::{Cause, Failure};

/// The locks of the runs that this process runs under, as its environment tells them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
// ADR 0046
pub(super) struct Surrounding {
    leases: Vec<Named>,
}

/// A lease and its lock.
pub(super) type Named = (LockName, Stamp);

impl Surrounding {
    pub(super) fn of_environment() -> Self {
        let read = |name| env::var(name).unwrap_or_default();
        let mut all = Self::read(&read(LOCK), &read(FENCE), &read(LEASE)).unwrap_or_default();
        let further = Self::from_json(&read(AROUND)).unwrap_or_default().without(&all.leases);
        all.leases.extend(further.leases);
        all
    }

    /// Reads what [`to_json`](Self::to_json) has written.
    fn from_json(text: &str) -> Option<Self> {
        let items: Vec<[String; 3]> = serde_json::from_str(text).ok()?;
        let read = |[name, fence, lease]: [String; 3]| {
            let stamp = Stamp::new(fence.parse().ok()?, lease.parse().ok()?);
            Some((LockName::new(name).ok()?, stamp))
        };
        Some(Self { leases: items.into_iter().map(read).collect::<Option<_>>()? })
    }

    /// Name, fence and lease of each lock.
    pub(super) fn to_json(&self) -> String {
        let items = self.leases.iter().map(|(name, stamp)| {
            json!([name.as_str(), stamp.fence.to_string(), stamp.lease.to_string()])
        });
        items.collect::<Value>().to_string()
    }

    /// The leases of other locks than these.
    pub(super) fn without(&self, leases: &[Named]) -> Self {
        let is_other = |(name, _): &&Named| leases.iter().all(|(other, _)| other != name);
        Self { leases: self.leases.iter().filter(is_other).cloned().collect() }
    }

    /// Reads the three variables; `None` unless they fit together.
    fn read(locks: &str, fences: &str, leases: &str) -> Option<Self> {
        let fences: Vec<Fence> = lines(fences)?;
        let ids: Vec<AcquisitionId> = lines(leases)?;
        // One name may have line breaks, several have none.
        let names = if fences.len() == 1 { vec![locks] } else { locks.split('\n').collect() };
        let names: Vec<_> = names.into_iter().map(LockName::new).collect::<Result<_, _>>().ok()?;
        let fits = names.len() == fences.len() && fences.len() == ids.len();
        let stamps = fences.into_iter().zip(ids).map(|(fence, lease)| Stamp::new(fence, lease));
        fits.then(|| Self { leases: names.into_iter().zip(stamps).collect() })
    }

    /// Whether there is a run around this process.
    pub(super) fn is_there(&self) -> bool {
        !self.leases.is_empty()
    }

    /// The lease of a lock.
    pub(super) fn lease(&self, name: &LockName) -> Option<Stamp> {
        self.leases.iter().find(|(held, _)| held == name).map(|(_, stamp)| *stamp)
    }
}

fn lines<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split('\n').map(|line| line.parse().ok()).collect()
}

/// Checks that the leases of the surrounding run are still its own: re-entry never grants.
pub(super) async fn check(locks: &LockRuntime, leases: &[Named]) -> Result<(), Failure> {
    for (name, stamp) in leases {
        let is_live = match locks.inspect(name).await? {
            // An id is never used again. On a quorum, others see the last fence of a block.
            Inspection::Held(held) => !held.kept && held.id == stamp.lease,
            Inspection::Free { .. } => false,
        };
        if !is_live {
            let text = format!(
                "lock {name:?}: the lease of the run around this one (fence {}) has ended, or is on another server or \
                 in another namespace, so it was not re-entered: stop, or leave --owner-env out to acquire anew",
                stamp.fence
            );
            return Err(Failure::new(Cause::Lost, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:7";

    #[test]
    fn the_variables_of_one_lock_and_of_several_are_read() {
        let one = Surrounding::read("a\nb", "5", ID).unwrap();
        assert_eq!(one.lease(&LockName::new("a\nb").unwrap()).unwrap().fence.get(), 5);
        let two = Surrounding::read("a\nb", "5\n6", &format!("{ID}\n{ID}")).unwrap();
        assert_eq!(two.lease(&LockName::new("b").unwrap()).unwrap().fence.get(), 6);
        assert!(two.lease(&LockName::new("c").unwrap()).is_none());
    }

    #[test]
    fn leases_of_runs_further_out_are_read_as_they_were_written() {
        let around = Surrounding::read("a\nb", "5\n6", &format!("{ID}\n{ID}")).unwrap();
        let odd = Surrounding::read("a\n\"b", "7", ID).unwrap();
        for written in [&around, &odd, &Surrounding::default()] {
            assert_eq!(Surrounding::from_json(&written.to_json()).as_ref(), Some(written));
        }
        let b = Surrounding::read("b", "9", ID).unwrap();
        assert!(around.without(&b.leases).lease(&LockName::new("b").unwrap()).is_none());
        assert_eq!(Surrounding::from_json("[[\"a\"]]"), None);
    }

    #[test]
    fn variables_that_do_not_fit_are_none() {
        for (locks, fences, leases) in
            [("", "", ""), ("a", "x", ID), ("a", "5", "x"), ("a", "5\n6", ID), ("a\nb", "5\n6", ID)]
        {
            assert_eq!(Surrounding::read(locks, fences, leases), None);
        }
    }
}
