use std::{collections::BTreeMap, ops::Range};

use leasehold_core::{
    redis_client::Value,
    seam::{Choice, MasterVerdict, Probe, Redirect, View, acknowledged, choose},
};
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::{Mistake, Wrong, sim::Rules as Routes};

use super::{plan::Plan, run::run, runner};

/// Other rules than the real ones, or a store that makes a runtime wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mutation {
    pub(crate) store: Option<Mistake>,
    pub(crate) driver: Rules,
    pub(crate) wrong: Option<Wrong>,
    pub(crate) routes: Routes,
    /// Changes what a seed has decided.
    pub(crate) plan: fn(&mut Plan),
}

/// A mutation that the checks must notice within some seeds.
struct Mutant {
    name: &'static str,
    seeds: Range<u64>,
    mutate: fn(&mut Mutation),
}

/// The first seed in whose run one message or connection goes wrong at a time; so it is in every
/// eighth after it.
const STEADY: u64 = 3;

/// The first seed with a group of servers, or with a Cluster whose slots move; so it is in every
/// eighth, or sixteenth, after it.
const GROUP: u64 = 2;
const CLUSTER: u64 = 6;

/// Every mutant.
const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "belief_in_a_push_from_its_arrival",
        seeds: 0..2_000,
        mutate: |mutation| mutation.driver.push_counts_from = |_, arrived_at| arrived_at,
    },
    Mutant {
        name: "belief_in_a_push_from_the_last_not_yet",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::CountsPushesFromNotYet),
    },
    Mutant {
        name: "validity_from_the_reply",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::CountsAnswersFromArrival),
    },
    Mutant {
        name: "renew_without_the_fence_check",
        seeds: 0..10_000,
        mutate: |mutation| mutation.store = Some(Mistake::ExtendsAnyFence),
    },
    Mutant {
        name: "release_without_the_fence_check",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::ReleasesAnyFence),
    },
    Mutant {
        name: "increments_in_place_of_absolute_holds",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::AddsHolds),
    },
    Mutant {
        name: "a_renewal_that_recreates",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::RecreatesLeases),
    },
    Mutant {
        name: "a_watchdog_that_renews_an_open_offer",
        seeds: 0..2_000,
        mutate: |mutation| mutation.driver.renews = |_| true,
    },
    Mutant {
        name: "an_id_used_twice",
        seeds: 0..2_000,
        mutate: |mutation| mutation.driver.next_id = |_, old| old,
    },
    Mutant {
        name: "a_token_taken_by_whom_it_was_not_offered",
        seeds: 0..2_000,
        mutate: |mutation| mutation.driver.may_take = |_, _| true,
    },
    Mutant {
        name: "a_withdraw_of_any_place",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::WithdrawsAnyPlace),
    },
    Mutant {
        name: "no_withdraw_mark",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::LeavesNoMark),
    },
    Mutant {
        name: "a_block_not_reserved_in_the_counter",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::ReservesTooLittle),
    },
    Mutant {
        name: "a_hand_over_that_does_not_look_at_the_clock",
        seeds: 0..2_000,
        mutate: |mutation| mutation.driver.is_believed = |_, _| true,
    },
    Mutant {
        name: "an_old_push_that_costs_the_place",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::GivesUpPlaceOfGonePush),
    },
    Mutant {
        name: "an_orphan_released_by_its_fence",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::ReleasesOrphansByFence),
    },
    Mutant {
        name: "a_replica_that_is_believed",
        seeds: 0..2_000,
        mutate: |mutation| mutation.store = Some(Mistake::AnswersAsReplica),
    },
    Mutant {
        name: "a_minimum_that_no_release_knows_of",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::KeepsNothingClosed),
    },
    Mutant {
        name: "a_turn_that_goes_on_behind_a_closed_door",
        seeds: 0..2_000,
        mutate: |mutation| mutation.driver.ends_turn = |_| false,
    },
    Mutant {
        name: "a_first_task_that_is_deaf_while_it_asks",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::IsDeafWhileItAsks),
    },
    // The time of a heartbeat matters for connections that die in silence, which are replaced by
    // then (`tests/p7_first_come`). Where heartbeats wait for answers as well, every lost one shows
    // it.
    Mutant {
        name: "a_place_that_waits_for_a_whole_command",
        seeds: STEADY..20_000,
        mutate: |mutation| {
            mutation.wrong = Some(Wrong::BeatsOneAtATime);
            mutation.driver.place_deadline = |_, command| command;
        },
    },
    Mutant {
        name: "a_heartbeat_with_the_greater_of_two_deadlines",
        seeds: STEADY..20_000,
        mutate: |mutation| {
            mutation.wrong = Some(Wrong::BeatsOneAtATime);
            mutation.driver.place_deadline = |heartbeat, command| heartbeat.max(command);
        },
    },
    Mutant {
        name: "a_heartbeat_that_waits_for_the_answer_before",
        seeds: 0..10_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::BeatsOneAtATime),
    },
    Mutant {
        name: "a_turn_that_forgets_missing_answers",
        seeds: 0..10_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::ForgetsUnanswered),
    },
    Mutant {
        name: "an_idle_turn_that_nobody_can_recall",
        seeds: 0..2_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::IgnoresWanted),
    },
    Mutant {
        name: "an_idle_turn_that_ends_by_an_old_recall",
        seeds: STEADY..10_000,
        mutate: |mutation| mutation.wrong = Some(Wrong::RepeatsWanted),
    },
    Mutant {
        name: "a_recall_that_is_not_learnt",
        seeds: STEADY..10_000,
        mutate: |mutation| mutation.driver.keeps = |_| true,
    },
    Mutant {
        name: "a_stale_master_that_is_believed",
        seeds: GROUP..10_000,
        mutate: |mutation| mutation.routes.is_fresh = |_| true,
    },
    Mutant {
        name: "a_sentinel_that_is_believed_alone",
        seeds: GROUP..10_000,
        mutate: |mutation| {
            mutation.routes.decide = |answers, _, _| match answers.first() {
                Some(Some(place)) => MasterVerdict::Named(place.clone()),
                _ => MasterVerdict::Open,
            };
        },
    },
    Mutant {
        name: "a_wait_on_another_connection",
        seeds: GROUP..10_000,
        mutate: |mutation| mutation.routes.waits_for = |_| 0,
    },
    Mutant {
        name: "a_master_without_replicas_that_is_enough",
        seeds: GROUP..10_000,
        mutate: |mutation| {
            mutation.routes.acknowledged = |asked, counted| match counted {
                Some(Value::Int(0)) => Ok(()),
                counted => acknowledged(asked, counted),
            };
        },
    },
    Mutant {
        name: "a_pushed_grant_that_no_replica_has",
        seeds: GROUP..10_000,
        mutate: |mutation| mutation.driver.needs_acks = |_| false,
    },
    // These are no mistakes of the program, but of those who set it up.
    Mutant {
        name: "a_failover_without_acknowledgements",
        seeds: GROUP..10_000,
        mutate: |mutation| mutation.plan = |plan| plan.asks = 0,
    },
    Mutant {
        name: "two_masters_and_one_of_two_replicas",
        seeds: GROUP..20_000,
        mutate: |mutation| mutation.plan = |plan| plan.asks = plan.asks.min(1),
    },
    Mutant {
        name: "a_new_master_whose_clock_is_ahead",
        seeds: GROUP..10_000,
        mutate: |mutation| mutation.plan = Plan::set_first_clock_back,
    },
    Mutant {
        name: "a_clock_that_is_behind_by_more_than_the_outage",
        seeds: GROUP..10_000,
        mutate: |mutation| mutation.plan = Plan::set_new_clocks_back,
    },
    Mutant {
        name: "an_old_slot_map_that_is_kept",
        seeds: CLUSTER..10_000,
        mutate: |mutation| {
            mutation.routes.moved = |_, _, _| {};
            mutation.routes.settle = |owners, view| owners.view().is_none() && owners.settle(view);
        },
    },
    Mutant {
        name: "a_new_node_that_is_believed",
        seeds: CLUSTER..10_000,
        mutate: |mutation| {
            mutation.routes.choose = |told, look| match choose(told, look) {
                Choice::None if !told.is_empty() => Choice::Take(0),
                choice => choice,
            };
        },
    },
    Mutant {
        name: "a_view_that_is_believed_by_its_epoch_alone",
        seeds: CLUSTER..10_000,
        mutate: |mutation| {
            mutation.routes.choose = |told, look| {
                let nameless = |view: &View| View { nodes: BTreeMap::new(), ..view.clone() };
                let told: Vec<_> =
                    told.iter().map(|(place, view)| (place.clone(), nameless(view))).collect();
                let known = look.known.map(nameless);
                choose(&told, Probe { known: known.as_ref(), ..look })
            };
        },
    },
    Mutant {
        name: "a_look_by_each_of_a_crowd",
        seeds: CLUSTER..10_000,
        mutate: |mutation| mutation.routes.looks = |_| true,
    },
    Mutant {
        name: "an_ask_taken_for_moved",
        seeds: CLUSTER..10_000,
        mutate: |mutation| {
            mutation.routes.redirect = |error, teller| match Redirect::of(error, teller)? {
                Redirect::Ask { slot, to } => Some(Redirect::Moved { slot, to }),
                other => Some(other),
            };
        },
    },
    Mutant {
        name: "a_moved_taken_for_ask",
        seeds: CLUSTER..10_000,
        mutate: |mutation| {
            mutation.routes.redirect = |error, teller| match Redirect::of(error, teller)? {
                Redirect::Moved { slot, to } => Some(Redirect::Ask { slot, to }),
                other => Some(other),
            };
            mutation.routes.settle = |owners, view| owners.view().is_none() && owners.settle(view);
        },
    },
];

impl Mutation {
    /// The real rules.
    pub(crate) fn none() -> Self {
        let (driver, routes) = (Rules::default(), Routes::default());
        Self { store: None, driver, wrong: None, routes, plan: |_| {} }
    }

    /// The mutant of a name, or the real rules.
    pub(crate) fn named(name: Option<&str>) -> Self {
        let mut mutation = Self::none();
        let mutant = name.and_then(|name| MUTANTS.iter().find(|mutant| mutant.name == name));
        if let Some(mutant) = mutant {
            (mutant.mutate)(&mut mutation);
        }
        mutation
    }
}

/// Runs seeds until a mutant is caught: a seed fails that passes under the real rules.
fn is_caught(name: &str) {
    let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).expect("it is in the table");
    let mutation = Mutation::named(Some(name));
    let (mut range, mut seeds) = (mutant.seeds.clone(), 0);
    // Those that begin with a seed of a kind are looked for among seeds of that kind.
    let step = match range.start {
        STEADY | GROUP => 8,
        CLUSTER => 16,
        _ => 1,
    };
    loop {
        let batch = runner::seeds(range.clone(), step, mutation, 1);
        seeds += batch.tally.runs;
        let Some((seed, violations)) = batch.failed.first() else {
            panic!("{name}: not caught by the seeds {:?}; {}", mutant.seeds, batch.tally);
        };
        if run(*seed, Mutation::none(), false).0.violations.is_empty() {
            println!("{name}: caught after {seeds} seeds, by seed {seed}: {}", violations[0]);
            return;
        }
        range.start = seed + step;
    }
}

/// Makes a test of every mutant, which must be in the table.
macro_rules! mutants {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                is_caught(stringify!($name));
            }
        )+

        #[test]
        fn every_mutant_has_a_test() {
            let tested = [$(stringify!($name)),+];
            assert!(MUTANTS.iter().map(|mutant| mutant.name).eq(tested));
        }
    };
}

mutants! {
    belief_in_a_push_from_its_arrival
    belief_in_a_push_from_the_last_not_yet
    validity_from_the_reply
    renew_without_the_fence_check
    release_without_the_fence_check
    increments_in_place_of_absolute_holds
    a_renewal_that_recreates
    a_watchdog_that_renews_an_open_offer
    an_id_used_twice
    a_token_taken_by_whom_it_was_not_offered
    a_withdraw_of_any_place
    no_withdraw_mark
    a_block_not_reserved_in_the_counter
    a_hand_over_that_does_not_look_at_the_clock
    an_old_push_that_costs_the_place
    an_orphan_released_by_its_fence
    a_replica_that_is_believed
    a_minimum_that_no_release_knows_of
    a_turn_that_goes_on_behind_a_closed_door
    a_first_task_that_is_deaf_while_it_asks
    a_place_that_waits_for_a_whole_command
    a_heartbeat_with_the_greater_of_two_deadlines
    a_heartbeat_that_waits_for_the_answer_before
    a_turn_that_forgets_missing_answers
    an_idle_turn_that_nobody_can_recall
    an_idle_turn_that_ends_by_an_old_recall
    a_recall_that_is_not_learnt
    a_stale_master_that_is_believed
    a_sentinel_that_is_believed_alone
    a_wait_on_another_connection
    a_master_without_replicas_that_is_enough
    a_pushed_grant_that_no_replica_has
    a_failover_without_acknowledgements
    two_masters_and_one_of_two_replicas
    a_new_master_whose_clock_is_ahead
    a_clock_that_is_behind_by_more_than_the_outage
    an_old_slot_map_that_is_kept
    a_new_node_that_is_believed
    a_view_that_is_believed_by_its_epoch_alone
    a_look_by_each_of_a_crowd
    an_ask_taken_for_moved
    a_moved_taken_for_ask
}
