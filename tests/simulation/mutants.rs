use std::{collections::BTreeMap, ops::Range};

use leasehold_redis::{
    MasterVerdict,
    redis_client::Value,
    seam::{Choice, Probe, Redirect, View, acknowledged, choose},
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

/// Makes the table of mutants, and a test of each.
macro_rules! mutants {
    ($($name:ident: $seeds:expr, $mutate:expr;)+) => {
        /// Every mutant.
        const MUTANTS: &[Mutant] =
            &[$(Mutant { name: stringify!($name), seeds: $seeds, mutate: $mutate }),+];

        $(
            #[test]
            fn $name() {
                is_caught(stringify!($name));
            }
        )+
    };
}

mutants! {
    belief_in_a_push_from_its_arrival: 0..2_000,
        |mutation| mutation.driver.push_counts_from = |_, arrived_at| arrived_at;
    belief_in_a_push_from_the_last_not_yet: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::CountsPushesFromNotYet);
    validity_from_the_reply: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::CountsAnswersFromArrival);
    renew_without_the_fence_check: 0..10_000,
        |mutation| mutation.store = Some(Mistake::ExtendsAnyFence);
    release_without_the_fence_check: 0..2_000,
        |mutation| mutation.store = Some(Mistake::ReleasesAnyFence);
    increments_in_place_of_absolute_holds: 0..2_000,
        |mutation| mutation.store = Some(Mistake::AddsHolds);
    a_renewal_that_recreates: 0..2_000, |mutation| mutation.store = Some(Mistake::RecreatesLeases);
    a_watchdog_that_renews_an_open_offer: 0..2_000, |mutation| mutation.driver.renews = |_| true;
    an_id_used_twice: 0..2_000, |mutation| mutation.driver.next_id = |_, old| old;
    a_token_taken_by_whom_it_was_not_offered: 0..2_000,
        |mutation| mutation.driver.may_take = |_, _| true;
    a_withdraw_of_any_place: 0..2_000, |mutation| mutation.store = Some(Mistake::WithdrawsAnyPlace);
    no_withdraw_mark: 0..2_000, |mutation| mutation.store = Some(Mistake::LeavesNoMark);
    a_block_not_reserved_in_the_counter: 0..2_000,
        |mutation| mutation.store = Some(Mistake::ReservesTooLittle);
    a_hand_over_that_does_not_look_at_the_clock: 0..2_000,
        |mutation| mutation.driver.is_believed = |_, _| true;
    an_old_push_that_costs_the_place: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::GivesUpPlaceOfGonePush);
    an_orphan_released_by_its_fence: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::ReleasesOrphansByFence);
    a_replica_that_is_believed: 0..2_000,
        |mutation| mutation.store = Some(Mistake::AnswersAsReplica);
    a_minimum_that_no_release_knows_of: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::KeepsNothingClosed);
    a_turn_that_goes_on_behind_a_closed_door: 0..2_000,
        |mutation| mutation.driver.ends_turn = |_| false;
    a_first_task_that_is_deaf_while_it_asks: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::IsDeafWhileItAsks);
    // The time of a heartbeat matters for connections that die in silence, which are replaced by
    // then (`tests/p7_first_come`). Where heartbeats wait for answers as well, every lost one shows
    // it.
    a_place_that_waits_for_a_whole_command: STEADY..20_000, |mutation| {
        mutation.wrong = Some(Wrong::BeatsOneAtATime);
        mutation.driver.place_deadline = |_, command| command;
    };
    a_heartbeat_with_the_greater_of_two_deadlines: STEADY..20_000, |mutation| {
        mutation.wrong = Some(Wrong::BeatsOneAtATime);
        mutation.driver.place_deadline = |heartbeat, command| heartbeat.max(command);
    };
    a_heartbeat_that_waits_for_the_answer_before: 0..10_000,
        |mutation| mutation.wrong = Some(Wrong::BeatsOneAtATime);
    a_turn_that_forgets_missing_answers: 0..10_000,
        |mutation| mutation.wrong = Some(Wrong::ForgetsUnanswered);
    an_idle_turn_that_nobody_can_recall: 0..2_000,
        |mutation| mutation.wrong = Some(Wrong::IgnoresWanted);
    an_idle_turn_that_ends_by_an_old_recall: STEADY..10_000,
        |mutation| mutation.wrong = Some(Wrong::RepeatsWanted);
    a_recall_that_is_not_learnt: STEADY..10_000, |mutation| mutation.driver.keeps = |_| true;
    a_stale_master_that_is_believed: GROUP..10_000, |mutation| mutation.routes.is_fresh = |_| true;
    a_sentinel_that_is_believed_alone: GROUP..10_000, |mutation| {
        mutation.routes.decide = |answers, _, _| match answers.first() {
            Some(Some(place)) => MasterVerdict::Named(place.clone()),
            _ => MasterVerdict::Open,
        };
    };
    a_wait_on_another_connection: GROUP..10_000, |mutation| mutation.routes.waits_for = |_| 0;
    a_master_without_replicas_that_is_enough: GROUP..10_000, |mutation| {
        mutation.routes.acknowledged = |asked, counted| match counted {
            Some(Value::Int(0)) => Ok(()),
            counted => acknowledged(asked, counted),
        };
    };
    a_pushed_grant_that_no_replica_has: GROUP..10_000,
        |mutation| mutation.driver.needs_acks = |_| false;
    // These are no mistakes of the program, but of those who set it up.
    a_failover_without_acknowledgements: GROUP..10_000,
        |mutation| mutation.plan = |plan| plan.asks = 0;
    two_masters_and_one_of_two_replicas: GROUP..20_000,
        |mutation| mutation.plan = |plan| plan.asks = plan.asks.min(1);
    a_new_master_whose_clock_is_ahead: GROUP..10_000,
        |mutation| mutation.plan = Plan::set_first_clock_back;
    a_clock_that_is_behind_by_more_than_the_outage: GROUP..10_000,
        |mutation| mutation.plan = Plan::set_new_clocks_back;
    an_old_slot_map_that_is_kept: CLUSTER..10_000, |mutation| {
        mutation.routes.moved = |_, _, _| {};
        mutation.routes.settle = |owners, view| owners.view().is_none() && owners.settle(view);
    };
    a_new_node_that_is_believed: CLUSTER..10_000, |mutation| {
        mutation.routes.choose = |told, look| match choose(told, look) {
            Choice::None if !told.is_empty() => Choice::Take(0),
            choice => choice,
        };
    };
    a_view_that_is_believed_by_its_epoch_alone: CLUSTER..10_000, |mutation| {
        mutation.routes.choose = |told, look| {
            let nameless = |view: &View| View { nodes: BTreeMap::new(), ..view.clone() };
            let told: Vec<_> =
                told.iter().map(|(place, view)| (place.clone(), nameless(view))).collect();
            let known = look.known.map(nameless);
            choose(&told, Probe { known: known.as_ref(), ..look })
        };
    };
    a_look_by_each_of_a_crowd: CLUSTER..10_000, |mutation| mutation.routes.looks = |_| true;
    an_ask_taken_for_moved: CLUSTER..10_000, |mutation| {
        mutation.routes.redirect = |error, teller| match Redirect::of(error, teller)? {
            Redirect::Ask { slot, to } => Some(Redirect::Moved { slot, to }),
            other => Some(other),
        };
    };
    a_moved_taken_for_ask: CLUSTER..10_000, |mutation| {
        mutation.routes.redirect = |error, teller| match Redirect::of(error, teller)? {
            Redirect::Moved { slot, to } => Some(Redirect::Ask { slot, to }),
            other => Some(other),
        };
        mutation.routes.settle = |owners, view| owners.view().is_none() && owners.settle(view);
    };
}
