//! The contract notices when a decision of the store is replaced: each mutant of the embedded
//! store fails cases of it.

use std::panic::{self, AssertUnwindSafe};

use leasehold_core::seam::StoreRules;
use leasehold_testkit::contract::{CASES, Case, MemorySubject};
use tokio::runtime::Builder;

/// The cases that a store with these rules fails.
fn failed(rules: StoreRules) -> Vec<&'static str> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let fails = |case: &&Case| {
        let subject = Box::new(MemorySubject::with_rules(case.fencing(), rules));
        let play = AssertUnwindSafe(|| runtime.block_on(case.play(subject)));
        panic::catch_unwind(play).is_err()
    };
    CASES.iter().filter(fails).map(|case| case.name).collect()
}

#[test]
fn the_real_rules_fail_nothing() {
    assert!(failed(StoreRules::default()).is_empty());
}

#[test]
fn every_mutant_is_noticed() {
    let real = StoreRules::default;
    let mutants = [
        (
            "a renewal without the fence",
            StoreRules { extends: |lease, named| lease.id == named.id, ..real() },
            "a_renewal_needs_id_and_fence",
        ),
        (
            "a release without the fence",
            StoreRules { releases: |lease, named| lease.id == named.id, ..real() },
            "a_release_needs_id_and_fence",
        ),
        (
            "a hold that increments",
            StoreRules { holds: |stored, _| stored + 1, ..real() },
            "a_hold_sets_the_absolute_count",
        ),
        (
            "a renewal that re-creates",
            StoreRules { renewal_recreates: |_| true, ..real() },
            "a_renewal_never_recreates",
        ),
        (
            "a block that is not reserved",
            StoreRules { reserves: |first, _| first, ..real() },
            "a_block_lies_between_the_counter_and_the_clock",
        ),
        (
            "a withdrawal without a mark",
            StoreRules { is_withdrawn: |_| false, ..real() },
            "a_withdrawn_acquisition_is_never_granted",
        ),
        (
            "a withdrawal that leaves the place",
            StoreRules { leaves_queue: |_, _| false, ..real() },
            "a_withdrawal_gives_up_the_place",
        ),
        (
            "a withdrawal of whatever place its runtime has",
            StoreRules {
                leaves_queue: |place, withdrawn| place.runtime() == withdrawn.runtime(),
                ..real()
            },
            "a_withdrawal_gives_up_the_place",
        ),
    ];
    for (mutant, rules, case) in mutants {
        let failed = failed(rules);
        assert!(failed.contains(&case), "{mutant} fails {failed:?}");
    }
}
