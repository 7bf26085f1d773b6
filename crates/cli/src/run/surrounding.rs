use std::env;

use leasehold::{AcquisitionId, Fence, LockName, LockRuntime, Stamp, store::Inspection};

use serde_json::{Value, json};

use crate::ending::{Cause, CliError};

/// The names of the locks.
const LOCK: &str = "LEASEHOLD_LOCK";
/// Their fences.
const FENCE: &str = "LEASEHOLD_FENCE";
/// The ids of their leases.
const LEASE: &str = "LEASEHOLD_LEASE";
/// The other leases of the runs around the command, in JSON: what runs in it may re-enter them, too.
const AROUND: &str = "LEASEHOLD_AROUND";

/// A lease and its lock.
pub(super) type Named = (LockName, Stamp);

/// The leases of the runs that this process runs under, as its environment tells them. Who is to re-enter them
/// has to know all.
// ADR 0046
pub(super) fn around(are_needed: bool) -> Result<Vec<Named>, CliError> {
    let [locks, fences, leases, around] =
        [LOCK, FENCE, LEASE, AROUND].map(|name| env::var(name).unwrap_or_default());
    let (own, further) = (from_lines(&locks, &fences, &leases), from_json(&around));
    let is_there = |text: &String| !text.is_empty();
    let is_own_spoilt = own.is_none() && [&locks, &fences, &leases].into_iter().any(is_there);
    if are_needed && (is_own_spoilt || further.is_none() && is_there(&around)) {
        return Err(CliError::usage(format!(
            "the variables {LOCK}, {FENCE}, {LEASE} and {AROUND} are incomplete, or do not fit together: pass all of \
             them on to what re-enters a lock, or leave --owner-env out"
        )));
    }
    let mut all = own.unwrap_or_default();
    let further = without(&further.unwrap_or_default(), &all);
    all.extend(further);
    Ok(all)
}

/// Reads what [`to_json`] has written.
fn from_json(text: &str) -> Option<Vec<Named>> {
    let items: Vec<[String; 3]> = serde_json::from_str(text).ok()?;
    let read = |[name, fence, lease]: [String; 3]| {
        let stamp = Stamp::new(fence.parse().ok()?, lease.parse().ok()?);
        Some((LockName::new(name).ok()?, stamp))
    };
    items.into_iter().map(read).collect()
}

/// Name, fence and lease of each lock.
fn to_json(leases: &[Named]) -> String {
    let items = leases.iter().map(|(name, stamp)| {
        json!([name.as_str(), stamp.fence.to_string(), stamp.lease.to_string()])
    });
    items.collect::<Value>().to_string()
}

/// Those of other locks.
fn without(all: &[Named], leases: &[Named]) -> Vec<Named> {
    all.iter().filter(|(name, _)| lease(leases, name).is_none()).cloned().collect()
}

/// The lease of a lock.
pub(super) fn lease(leases: &[Named], name: &LockName) -> Option<Stamp> {
    leases.iter().find(|(held, _)| held == name).map(|(_, stamp)| *stamp)
}

/// Reads the three variables; `None` unless they fit together.
fn from_lines(locks: &str, fences: &str, leases: &str) -> Option<Vec<Named>> {
    let fences: Vec<Fence> = lines(fences)?;
    let ids: Vec<AcquisitionId> = lines(leases)?;
    // One name may have line breaks, several have none.
    let names = if fences.len() == 1 { vec![locks] } else { locks.split('\n').collect() };
    let names: Vec<_> = names.into_iter().map(LockName::new).collect::<Result<_, _>>().ok()?;
    let fits = names.len() == fences.len() && fences.len() == ids.len();
    let stamps = fences.into_iter().zip(ids).map(|(fence, lease)| Stamp::new(fence, lease));
    fits.then(|| names.into_iter().zip(stamps).collect())
}

fn lines<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split('\n').map(|line| line.parse().ok()).collect()
}

/// What a command learns of its leases: a line for each lock, in the order of the command line.
pub(super) fn variables(leases: &[Named], around: &[Named]) -> [(&'static str, String); 4] {
    let joined =
        |show: fn(&Named) -> String| leases.iter().map(show).collect::<Vec<_>>().join("\n");
    [
        (LOCK, joined(|(name, _)| name.to_string())),
        (FENCE, joined(|(_, stamp)| stamp.fence.to_string())),
        (LEASE, joined(|(_, stamp)| stamp.lease.to_string())),
        (AROUND, to_json(&without(around, leases))),
    ]
}

/// Checks that the leases of the surrounding run are still its own: re-entry never grants.
pub(super) async fn check(locks: &LockRuntime, leases: &[Named]) -> Result<(), CliError> {
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
            return Err(CliError::new(Cause::Lost, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:7";

    fn fence(leases: &[Named], name: &str) -> Option<u64> {
        lease(leases, &LockName::new(name).unwrap()).map(|stamp| stamp.fence.get())
    }

    #[test]
    fn the_variables_of_one_lock_and_of_several_are_read() {
        let one = from_lines("a\nb", "5", ID).unwrap();
        assert_eq!(fence(&one, "a\nb"), Some(5));
        let two = from_lines("a\nb", "5\n6", &format!("{ID}\n{ID}")).unwrap();
        assert_eq!(fence(&two, "b"), Some(6));
        assert_eq!(fence(&two, "c"), None);
    }

    #[test]
    fn leases_of_runs_further_out_are_read_as_they_were_written() {
        let around = from_lines("a\nb", "5\n6", &format!("{ID}\n{ID}")).unwrap();
        let odd = from_lines("a\n\"b", "7", ID).unwrap();
        for written in [&around, &odd, &Vec::new()] {
            assert_eq!(from_json(&to_json(written)).as_ref(), Some(written));
        }
        let b = from_lines("b", "9", ID).unwrap();
        assert_eq!(fence(&without(&around, &b), "b"), None);
        assert_eq!(from_json("[[\"a\"]]"), None);
    }

    #[test]
    fn variables_that_do_not_fit_are_none() {
        for (locks, fences, leases) in
            [("", "", ""), ("a", "x", ID), ("a", "5", "x"), ("a", "5\n6", ID), ("a\nb", "5\n6", ID)]
        {
            assert_eq!(from_lines(locks, fences, leases), None);
        }
    }
}
