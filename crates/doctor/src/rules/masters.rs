use leasehold_redis::ONE_ADDRESS;

use super::Case;
use crate::{Finding, Promise::OneBeliever, Severity, Topic};

/// Whether all connections to the address lead to the same master.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let runs = &case.told.runs;
    if runs.len() < 2 {
        return Vec::new();
    }
    let listed: Vec<&str> = runs.iter().map(String::as_str).collect();
    let what = format!(
        "the address leads to {} masters that know nothing of each other (run_id {}): each of them grants every lock",
        runs.len(),
        listed.join(", ")
    );
    vec![Finding::new(Severity::Danger, Topic::Reach, what, ONE_ADDRESS).endangers(&[OneBeliever])]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::{Scene, healthy, seen};

    #[test]
    fn several_masters_at_one_address_are_a_danger() {
        for (runs, found) in [
            (&[][..], None),
            (&["a"], None),
            (&["a", "b"], Some((Severity::Danger, Topic::Reach, "P1"))),
        ] {
            let mut told = healthy();
            told.runs = runs.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
            let findings = judge(Scene::of(told).case());
            assert_eq!(seen(&findings), Vec::from_iter(found), "{runs:?}");
        }
    }
}
