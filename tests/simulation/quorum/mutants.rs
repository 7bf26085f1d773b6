use std::ops::Range;

use leasehold_quorum::FenceVerdict;
use leasehold_testkit::sim::NodeMistake;

use super::run::{Mutation, first_failure};

/// Wrong decisions that the checks must notice within some seeds.
fn is_caught(name: &str, seeds: Range<u64>, mutate: fn(&mut Mutation)) {
    let mut mutation = Mutation::default();
    mutate(&mut mutation);
    let (outcomes, failed) = first_failure(seeds, mutation);
    match failed {
        Some((seed, outcome)) => println!("{name}: seed {seed}: {}", outcome.violations[0]),
        None => panic!("{name} was not noticed in {} runs", outcomes.len()),
    }
}

#[test]
fn a_restarted_node_that_votes_at_once() {
    is_caught("a restarted node that votes at once", 0..3_000, |mutation| {
        mutation.mistake = Some(NodeMistake::VotesAtOnce);
    });
}

#[test]
fn a_fence_from_the_first_answer() {
    is_caught("a fence from the first answer", 0..3_000, |mutation| {
        mutation.rules.fence = |tally, _, ballot, _| match tally.votes(u8::MAX).next() {
            Some((_, vote)) if !vote.accepted => FenceVerdict::ToSettle { fence: vote.least },
            _ => FenceVerdict::ToSettle { fence: ballot },
        };
        // Otherwise the nodes that have accepted more refuse it.
        mutation.mistake = Some(NodeMistake::TakesAnyFence);
    });
}

#[test]
fn a_fence_without_a_second_round() {
    is_caught("a fence without a second round", 0..3_000, |mutation| {
        mutation.rules.fence = |tally, _, _, _| {
            let by = tally.votes(u8::MAX).fold(0, |by, (node, _)| by | 1 << node);
            FenceVerdict::Accepted { by }
        };
    });
}

#[test]
fn belief_from_the_last_answer() {
    is_caught("belief from the last answer", 0..3_000, |mutation| {
        mutation.believes_answers = true;
    });
}

#[test]
fn a_minority_that_is_not_taken_back() {
    is_caught("a minority that is not taken back", 0..3_000, |mutation| {
        mutation.rules.takes_back = false;
    });
}

#[test]
fn tries_of_one_acquisition_that_are_merged() {
    is_caught("tries that are merged", 0..10_000, |mutation| {
        mutation.rules.attempt = |_| 1;
    });
}

#[test]
fn an_older_try_that_takes_the_place_of_a_newer_one() {
    is_caught("an older try in place of a newer one", 0..10_000, |mutation| {
        mutation.mistake = Some(NodeMistake::TakesAnyTry);
    });
}

#[test]
fn a_spread_of_a_lease_that_has_ended() {
    is_caught("a spread of a lease that has ended", 0..3_000, |mutation| {
        mutation.rules.may_spread = |_, _| true;
    });
}

#[test]
fn a_majority_of_one_node() {
    is_caught("a majority of one node", 0..3_000, |mutation| {
        mutation.rules.whom = |_, first| first;
        mutation.rules.decision = |votes| votes.decision_of(2 * votes.votes(u8::MAX).count());
        mutation.rules.fence = |tally, _, _, _| {
            let by = tally.votes(u8::MAX).fold(0, |by, (node, _)| by | 1 << node);
            FenceVerdict::Accepted { by }
        };
        mutation.rules.left = |left, _| left.first().copied().unwrap_or_default();
    });
}
