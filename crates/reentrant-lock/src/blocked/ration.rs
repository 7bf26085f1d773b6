use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{Instant, LockName};

/// Which waits are reported: one of each name, and only so many names, within a time.
///
/// A thousand calls that wait for one lock have one report, and a thousand locks that are stuck
/// have a few, one of which tells how many were left out.
#[derive(Debug, Default)]
pub(crate) struct Ration {
    /// What was reported, and when.
    reported: BTreeMap<LockName, Instant>,
    left_out: u64,
}

impl Ration {
    /// The greatest number of names that are reported within the time.
    const MOST: usize = 8;

    /// Asks whether a wait for `name` may be reported at `now`; `within` is the time.
    ///
    /// Yields how many waits for other names were not reported since the last report.
    pub(crate) fn take(&mut self, name: &LockName, now: Instant, within: Duration) -> Option<u64> {
        self.reported.retain(|_, at| now.saturating_since(*at) < within);
        if self.reported.contains_key(name) {
            return None;
        }
        if self.reported.len() >= Self::MOST {
            self.left_out += 1;
            return None;
        }
        self.reported.insert(name.clone(), now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::at(Duration::from_secs(seconds))
    }

    fn name(n: usize) -> LockName {
        LockName::new(format!("lock-{n}")).unwrap()
    }

    #[test]
    fn a_name_is_reported_once_within_the_time() {
        let mut ration = Ration::default();
        assert_eq!(ration.take(&name(1), at(10), WITHIN), Some(0));
        for second in 10..20 {
            assert_eq!(ration.take(&name(1), at(second), WITHIN), None);
        }
        assert_eq!(ration.take(&name(1), at(20), WITHIN), Some(0));
    }

    #[test]
    fn only_so_many_names_are_reported_and_the_rest_is_counted() {
        let mut ration = Ration::default();
        let reported = (0..1000).filter(|n| ration.take(&name(*n), at(10), WITHIN).is_some());
        assert_eq!(reported.count(), Ration::MOST);
        assert_eq!(ration.take(&name(2000), at(20), WITHIN), Some(1000 - Ration::MOST as u64));
        assert_eq!(ration.take(&name(2001), at(20), WITHIN), Some(0));
        assert!(ration.reported.len() <= Ration::MOST);
    }
}
