//! The contract notices every mistake of a store: each fails cases of it.

use std::panic::{self, AssertUnwindSafe};

use leasehold_testkit::{
    Mistake,
    contract::{CASES, Capability, Case, MemorySubject},
};
use tokio::runtime::Builder;

/// The cases that a store with this mistake fails.
fn failed(mistake: Option<Mistake>) -> Vec<&'static str> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let fails = |case: &&Case| {
        let subject = Box::new(MemorySubject::with_mistake(case.fencing(), mistake));
        let play = AssertUnwindSafe(|| runtime.block_on(case.play(subject)));
        panic::catch_unwind(play).is_err()
    };
    let played = CASES.iter().filter(|case| case.is_for(&Capability::OF_ONE));
    played.filter(fails).map(|case| case.name).collect()
}

#[test]
fn a_store_without_a_mistake_fails_nothing() {
    assert!(failed(None).is_empty());
}

#[test]
fn every_mistake_is_noticed() {
    for (mistake, case) in [
        (Mistake::ExtendsAnyFence, "a_renewal_needs_id_and_fence"),
        (Mistake::ReleasesAnyFence, "a_release_needs_id_and_fence"),
        (Mistake::AddsHolds, "a_hold_sets_the_absolute_count"),
        (Mistake::RecreatesLeases, "a_renewal_never_recreates"),
        (Mistake::ReservesTooLittle, "a_block_lies_between_the_counter_and_the_clock"),
        (Mistake::ForgetsWhatReadersSaw, "nobody_joins_under_a_fence_below_what_it_has_seen"),
        (Mistake::LeavesNoMark, "a_withdrawn_acquisition_is_never_granted"),
        (Mistake::WithdrawsLeasesOnly, "a_withdrawal_gives_up_the_place"),
        (Mistake::WithdrawsAnyPlace, "a_withdrawal_gives_up_the_place"),
    ] {
        let failed = failed(Some(mistake));
        assert!(failed.contains(&case), "{mistake:?} fails {failed:?}");
    }
}
