use std::{fmt, time::Duration};

use leasehold_core::{FencePolicy, FenceSettings, NamePattern};

use super::{
    cases,
    scene::Scene,
    subject::{
        Capability::{
            self, DataLoss, Exhaustion, Line, PartLoss, PlainCounter, Readers, Replicas,
            Replication, Restart, Snapshot, Time,
        },
        StoreUnderTest, Task,
    },
};

/// One thing that every store must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it must do.
    pub name: &'static str,
    /// The part of the suite.
    pub part: &'static str,
    /// Where the tokens of the case come from.
    pub policy: FencePolicy,
    /// The capabilities without which the case cannot be played.
    pub needs: &'static [Capability],
    play: for<'a> fn(&'a Scene) -> Task<'a>,
}

impl Case {
    /// Plays the case with an empty subject, then expects that nothing stays for ever.
    ///
    /// # Panics
    ///
    /// Panics if the store does not do what the case wants.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the subject.
    pub async fn play(&self, subject: Box<dyn StoreUnderTest>) {
        let scene = Scene::new(subject);
        (self.play)(&scene).await;
        let left_behind = scene.subject().left_behind().await;
        assert!(left_behind.is_empty(), "{left_behind:?} stays for ever");
    }

    /// Where the tokens of the case come from, and how long their counters are kept.
    ///
    /// # Panics
    ///
    /// Never: the times are in their range.
    pub fn fencing(&self) -> FenceSettings {
        let settings = FenceSettings::default().policy(self.policy).retention(RETENTION);
        let jobs = NamePattern::new("jobs/*").expect("a pattern");
        let settings = settings.and_then(|all| all.retention_of(jobs, RETENTION_OF_JOBS));
        settings.expect("times in their range")
    }

    /// Whether a subject with these capabilities can play it.
    pub fn is_for(&self, capabilities: &[Capability]) -> bool {
        self.needs.iter().all(|need| capabilities.contains(need))
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.part, self.name)
    }
}

/// How long the subjects of the suite remember a counter.
pub const RETENTION: Duration = FenceSettings::MIN_RETENTION;

/// How long they remember that of a name like `jobs/*`.
pub const RETENTION_OF_JOBS: Duration = RETENTION.saturating_mul(2);

/// Plays a case with a subject of its own, then expects that nothing stays for ever.
///
/// A case that needs what the subject lacks is not played; the suites' own test says which.
///
/// # Panics
///
/// Panics if the store does not do what the case wants, or if there is no such case.
pub async fn run<S: StoreUnderTest>(name: &str) {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {name}"));
    let subject = S::start(case.fencing()).await;
    if case.is_for(subject.capabilities()) {
        case.play(subject).await;
    }
}

/// Hands the names of all cases to a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_cases {
    ([$($macro:tt)+] $($given:tt)*) => {
        $($macro)+! { $($given)*
            grant {
                a_free_lock_is_granted [TimeFloor],
                a_repeated_acquire_finds_the_same_grant_unrenewed [TimeFloor Time],
                a_busy_lock_tells_how_long [TimeFloor Time],
                an_expired_lease_frees_the_lock [TimeFloor Time],
                names_do_not_touch_each_other [TimeFloor],
                any_name_is_a_lock [TimeFloor],
                the_shortest_and_the_longest_ttl_are_granted [TimeFloor],
            }
            acks {
                what_a_replica_has_is_granted_and_extended [TimeFloor Replicas],
                what_too_few_have_is_not_granted [TimeFloor Replication],
                what_too_few_have_is_not_extended [TimeFloor Replication],
            }
            hold {
                a_hold_sets_the_absolute_count [TimeFloor],
                swapped_holds_leave_the_later_standing [TimeFloor],
                a_hold_extends_to_the_greater [TimeFloor Time],
                a_late_hold_changes_nothing [TimeFloor Time Snapshot],
                a_hold_never_grants [TimeFloor Time],
                a_hold_needs_id_and_fence [TimeFloor Snapshot],
            }
            release {
                a_release_frees_the_lock [TimeFloor],
                a_release_needs_id_and_fence [TimeFloor Snapshot],
                a_second_release_is_gone_and_ends_nobody_else [TimeFloor],
                a_release_of_an_expired_lease_is_gone [TimeFloor Time],
            }
            keep {
                a_kept_lock_stays_closed_for_exactly_n [TimeFloor Time],
                a_lock_may_be_kept_for_less_than_its_ttl [TimeFloor Time],
                a_lease_is_kept_once [TimeFloor Time Snapshot],
                a_kept_lock_is_closed_to_its_own_id [TimeFloor],
                a_kept_lock_yields_to_an_operator [TimeFloor],
                a_keep_is_moved_into_its_range [TimeFloor],
            }
            renew {
                a_renewal_extends_to_the_greater [TimeFloor Time],
                a_batch_answers_each_lease [TimeFloor],
                a_renewal_needs_id_and_fence [TimeFloor Snapshot],
                a_renewal_never_recreates [TimeFloor Time],
                a_full_batch_is_one_command [TimeFloor],
            }
            withdraw {
                a_withdrawn_acquisition_is_never_granted [TimeFloor],
                a_withdrawal_ends_the_grant_that_crossed_it [TimeFloor],
                a_withdrawal_touches_nobody_else [TimeFloor],
                the_mark_of_a_withdrawal_expires_by_itself [TimeFloor Time],
                a_withdrawn_acquisition_is_never_queued [TimeFloor],
                a_withdrawal_gives_up_the_place [TimeFloor],
                a_withdrawn_grant_goes_to_the_next [TimeFloor Line],
            }
            inspect {
                a_free_lock_tells_its_last_fence [TimeFloor],
                a_held_lock_tells_its_holder [TimeFloor Time],
                a_look_changes_nothing [TimeFloor Snapshot],
                a_look_shows_who_waits [TimeFloor Time Line],
            }
            scan {
                a_scan_names_what_is_held [TimeFloor],
                a_scan_names_what_matches [TimeFloor],
                a_scan_changes_nothing [TimeFloor Snapshot],
                many_looks_are_answered_in_order [TimeFloor],
            }
            force_release {
                the_inspected_lease_is_ended_and_the_fence_moves_on [TimeFloor],
                another_lease_is_not_ended [TimeFloor Snapshot],
                an_ended_holder_finds_its_lease_gone [TimeFloor],
                a_forced_release_is_told_and_grants_the_next [TimeFloor Time],
            }
            queue {
                a_waiter_is_told_its_place [TimeFloor],
                waiters_are_served_in_order [TimeFloor Line],
                a_wait_on_a_free_lock_is_a_grant [TimeFloor],
                a_runtime_has_one_place [TimeFloor Line],
                a_late_copy_of_an_older_wait_is_ignored [TimeFloor Snapshot Line],
                a_dead_waiter_is_passed_over [TimeFloor Time Line],
                a_sign_of_life_keeps_the_place [TimeFloor Time Line],
                an_expired_lease_goes_to_the_head [TimeFloor Time Line],
                a_queue_of_the_dead_holds_nobody_up [TimeFloor Time],
                a_try_passes_no_live_waiter [TimeFloor Time Line],
                a_kept_lock_is_waited_for [TimeFloor Time Line],
                a_claim_window_is_at_most_the_ttl [TimeFloor],
                a_batch_of_heartbeats_is_as_good_as_single_ones [TimeFloor DataLoss Line],
                a_great_batch_is_answered_in_order [TimeFloor],
                a_queue_ends_by_itself [TimeFloor],
            }
            wake {
                a_release_grants_the_first_waiter [TimeFloor],
                a_grant_tells_its_name_and_who_waits_behind [TimeFloor],
                a_grant_tells_the_greatest_sign_of_life [TimeFloor],
                a_grant_lives_for_the_claim_window_until_it_is_renewed [TimeFloor],
                an_unclaimed_grant_passes_on [TimeFloor Time Line],
                a_waiters_watermark_raises_its_token [TimeFloor],
                a_later_listener_takes_the_place_of_an_earlier [TimeFloor Line],
            }
            next {
                the_next_queues_behind_the_others [TimeFloor Line],
                who_queues_anew_counts_as_waiting [TimeFloor Line],
                the_next_is_granted_where_nobody_waits [TimeFloor],
                the_next_is_granted_where_the_dead_wait [TimeFloor Time],
                a_repeat_is_told_the_same [TimeFloor Snapshot Line],
                a_repeat_keeps_no_place_alive [TimeFloor Time Line],
                a_release_of_no_lease_queues_nobody [TimeFloor Snapshot Line],
                a_withdrawn_next_is_not_queued [TimeFloor Line],
                a_next_is_the_newest_of_its_runtime [TimeFloor Line],
                keeping_wins_over_queueing [TimeFloor],
                the_next_is_queued_under_the_releases_sign_of_life [TimeFloor Line],
            }
            recall {
                a_holder_that_keeps_is_told_who_is_wanted [TimeFloor],
                each_heartbeat_of_the_head_tells_again [TimeFloor Line],
                those_behind_the_head_tell_nothing [TimeFloor Line],
                a_holder_that_does_not_keep_is_told_nothing [TimeFloor],
                a_lock_kept_closed_is_not_recalled [TimeFloor],
                a_try_learns_whether_the_holder_keeps [TimeFloor],
                a_try_learns_whether_the_next_holder_keeps [TimeFloor Time Line],
                a_waiter_keeps_if_its_place_says_so [TimeFloor Line],
                a_next_keeps_if_it_says_so [TimeFloor Line],
                each_of_a_batch_says_whether_it_keeps [TimeFloor],
                a_look_says_who_keeps [TimeFloor],
                a_label_does_not_keep [TimeFloor],
            }
            readers {
                readers_share_one_fence [TimeFloor Readers],
                a_runtime_waits_to_read_and_to_write [TimeFloor Readers],
                the_last_reader_lets_a_writer_in [TimeFloor Readers],
                nobody_joins_past_a_writer_who_waits [TimeFloor Readers],
                readers_and_writers_take_turns [TimeFloor Readers],
                readers_follow_a_writer_that_died [TimeFloor Time Readers],
                a_try_beside_its_older_place_leaves_the_others [TimeFloor Time Readers],
                a_dead_reader_ends_with_its_ttl [TimeFloor Time Readers],
                what_is_late_changes_nothing_for_later_readers [TimeFloor Snapshot Readers],
                nobody_joins_readers_who_were_lost [TimeFloor Time PartLoss Readers],
                nobody_joins_under_a_fence_below_what_it_has_seen [TimeFloor Readers],
                a_writer_that_withdraws_lets_readers_in [TimeFloor Readers],
                a_reader_that_withdraws_leaves [TimeFloor Readers],
                readers_are_told_that_a_writer_waits [TimeFloor Readers],
                a_forced_release_ends_all_readers [TimeFloor Readers],
                the_next_of_a_reader_joins_or_queues [TimeFloor Readers],
            }
            block {
                a_grant_without_a_counter_gets_one_token [TimeFloor Time DataLoss],
                a_grant_alone_gets_1024_tokens [TimeFloor Time],
                a_grant_while_others_wait_gets_1024_tokens [TimeFloor Time Line],
                a_block_lies_between_the_counter_and_the_clock [TimeFloor Time],
                a_plain_counters_blocks_are_single_tokens_while_nobody_waits [Counter PlainCounter],
            }
            fence {
                every_grant_has_a_greater_fence [TimeFloor],
                fences_grow_after_a_total_loss [TimeFloor DataLoss],
                fences_grow_after_a_restart_without_data [TimeFloor Restart],
                fences_grow_after_the_counter_is_lost [TimeFloor PartLoss],
                fences_grow_after_the_counter_retired [TimeFloor Time],
                a_watermark_is_honoured_and_the_regression_told [TimeFloor],
                a_watermark_a_day_ahead_is_ignored [TimeFloor],
                an_exhausted_counter_refuses_grants_and_ends_leases [TimeFloor Exhaustion],
                an_exhausted_counter_keeps_the_waiters [TimeFloor Exhaustion Line],
                a_plain_counter_counts [Counter PlainCounter],
                a_plain_counter_repeats_tokens_after_a_loss [Counter PlainCounter DataLoss],
                a_watermark_heals_a_plain_counter [Counter PlainCounter DataLoss],
            }
            retention {
                a_name_has_the_retention_of_its_pattern [TimeFloor Time],
                names_that_are_asked_for_at_once_have_their_own_retention [TimeFloor Time],
                each_of_a_batch_of_heartbeats_has_its_own_retention [TimeFloor Time],
                each_of_a_batch_of_renewals_has_its_own_retention [TimeFloor Time],
                a_forced_release_leaves_a_name_its_own_retention [TimeFloor Time],
            }
            loss {
                a_new_waiter_leaves_no_immortal_key_after_a_loss [TimeFloor PartLoss],
                a_withdrawal_leaves_no_immortal_key_after_a_loss [TimeFloor PartLoss Line],
                those_who_waited_go_on_after_a_loss [TimeFloor PartLoss Line],
                a_holder_ends_its_lease_after_a_loss [TimeFloor PartLoss Line],
            }
            twice {
                every_command_may_run_twice [TimeFloor DataLoss Snapshot],
                every_command_may_run_twice_while_others_wait [TimeFloor DataLoss Snapshot Line],
                every_command_of_a_waiter_may_run_twice [TimeFloor DataLoss Snapshot Line],
                every_command_may_run_late [TimeFloor DataLoss Snapshot Line],
                only_an_acquire_leaves_anything_on_a_free_lock [TimeFloor DataLoss],
                a_late_acquire_costs_one_unrenewed_lease [TimeFloor Time],
                a_late_wait_costs_one_claim_window [TimeFloor Time Line],
            }
        }
    };
}

macro_rules! case_table {
    ($($part:ident { $($name:ident [$policy:ident $($need:ident)*],)* })*) => {
        &[$($(Case {
            name: stringify!($name),
            part: stringify!($part),
            policy: FencePolicy::$policy,
            needs: &[$($need),*],
            play: |scene| Box::pin(cases::$part::$name(scene)),
        },)*)*]
    };
}

/// Every case.
pub const CASES: &[Case] = contract_cases!([case_table]);

/// Makes a test of every case of the contract for one kind of subject:
/// `contract_suite!(MemorySubject);` is a whole file of tests.
#[macro_export]
macro_rules! contract_suite {
    (@tests $subject:ty ; $($part:ident { $($name:ident [$($needs:ident)*],)* })*) => {
        $($(
            #[tokio::test]
            async fn $name() {
                $crate::contract::run::<$subject>(stringify!($name)).await;
            }
        )*)*
    };
    ($subject:ident) => {
        $crate::contract_cases!([$crate::contract_suite] @tests $subject ;);
    };
}
