//! How much of the server's memory the locks take.

use super::Case;
use crate::{Finding, Severity, Topic};

/// The part of the memory from which on it is told.
const SHARE: u64 = 10;

/// Whether the keys of locks take a tenth of the memory: each name that was locked leaves one until the
/// retention of its fence is over.
pub(super) fn locks(Case { told, expected, .. }: Case<'_>) -> Option<Finding> {
    let (locks, bytes) = told.locks?.estimate();
    let limit = told.memory_limit().filter(|limit| *limit > 0);
    let (memory, of) = match limit {
        Some(limit) => (limit, "maxmemory"),
        None => (told.info("total_system_memory")?.parse().ok()?, "the memory of its machine"),
    };
    let hours = match expected.fencing.retentions().into_inner() {
        (one, other) if one == other => (one.as_secs() / 3600).to_string(),
        (least, most) => format!("{} to {}", least.as_secs() / 3600, most.as_secs() / 3600),
    };
    let what = format!(
        "the keys of about {locks} locks take about {} MB, of {} MB ({of}): each name that was locked keeps its fence \
         for {hours} h after its last use",
        bytes / 1_000_000,
        memory / 1_000_000,
    );
    let cure = "use fewer names, or a shorter retention (FenceSettings::retention_of, leasehold run --retention), or \
                give the server more memory";
    let is_found = bytes.saturating_mul(SHARE) >= memory;
    is_found.then(|| Finding::new(Severity::Notice, Topic::Memory, &[], what, cure))
}

#[cfg(test)]
mod tests {
    use leasehold_core::NamePattern;

    use super::*;
    use crate::{
        facts::LockKeys,
        tests::{Scene, healthy, info, set},
    };

    /// A million keys, half of them of locks, with 40 bytes each.
    const HALF: LockKeys =
        LockKeys { all: 1_000_000, sample: 1_000, of_locks: 500, length: 20_000 };

    fn found(maxmemory: &str, of_machine: &str, keys: Option<LockKeys>) -> Option<Finding> {
        let mut told = healthy();
        set(&mut told, "maxmemory", maxmemory);
        told.info = Ok(info(&format!("total_system_memory:{of_machine}\r\n")));
        told.locks = keys;
        locks(Scene::of(told).case())
    }

    #[test]
    fn locks_that_take_a_tenth_of_the_memory_are_told() {
        for (maxmemory, of_machine, is_found) in [
            ("1000000000", "8000000000", true),
            ("1000000001", "1", false),
            ("0", "1000000000", true),
            ("0", "1000000001", false),
            ("0", "", false),
        ] {
            let found = found(maxmemory, of_machine, Some(HALF));
            assert_eq!(found.is_some(), is_found, "{maxmemory} {of_machine}");
            if let Some(found) = found {
                assert_eq!(found.severity, Severity::Notice);
                assert!(found.what.contains("about 500000 locks take about 100 MB, of 1000 MB"));
                assert!(found.what.contains("for 168 h"), "{found}");
            }
        }
        assert_eq!(found("1", "1", None), None);
        let none = LockKeys { of_locks: 0, length: 0, ..HALF };
        assert_eq!(found("1", "1", Some(none)), None);
    }

    #[test]
    fn both_retentions_are_told_where_some_names_have_their_own() {
        let mut told = healthy();
        set(&mut told, "maxmemory", "1");
        told.locks = Some(HALF);
        let mut scene = Scene::of(told);
        let hour = std::time::Duration::from_secs(3600);
        let of_jobs = scene.expected.fencing.retention_of(NamePattern::default(), hour);
        scene.expected.fencing = of_jobs.unwrap();
        let found = locks(scene.case()).unwrap();
        assert!(found.what.contains("for 1 to 168 h"), "{found}");
    }
}
