use std::time::Duration;

use leasehold_core::{Fence, Instant};
use leasehold_testkit::{
    Event, History, Violation,
    history::{Overlap, Summary},
};

use crate::words::{fence, id};

const LEASES: u64 = 20;

fn at(millis: u64) -> Instant {
    Instant::at(Duration::from_millis(millis))
}

/// The token of the n-th lease.
fn token(n: u64) -> Fence {
    fence(100 + 2 * n)
}

/// Leases one after the other, each asked for while the one before is held, each with a write and
/// an increment; every fifth is lost, and its late write is refused.
fn good() -> Vec<Event> {
    let mut events = Vec::new();
    for n in 0..LEASES {
        let (worker, fence, lease, begin) = (n % 3, token(n), id(n), n * 100);
        let (asked_at, granted_at) = (at(begin.saturating_sub(50)), at(begin));
        let wrote = |at, order, accepted| Event::Wrote { fence, lease, at, order, accepted };
        events.extend([
            Event::Asked { worker, at: asked_at },
            Event::Granted { worker, fence, lease, asked_at, granted_at },
            Event::BelievedUntil { lease, until: at(begin + 30) },
            Event::BelievedUntil { lease, until: at(begin + 95) },
            wrote(at(begin + 10), 2 * n, true),
            Event::Incremented { worker },
        ]);
        if n % 5 == 4 {
            events.push(Event::Lost { lease, at: at(begin + 90) });
            events.push(wrote(at(begin + 160), 2 * n + 3, false));
        } else {
            events.push(Event::Released { lease, at: at(begin + 80) });
        }
    }
    events.push(Event::CounterRead { value: LEASES });
    events
}

/// The good history with the events of one lease changed.
fn corrupt(n: u64, mut change: impl FnMut(&mut Event)) -> History {
    let of_lease = |event: &Event| match event {
        Event::Granted { lease, .. }
        | Event::BelievedUntil { lease, .. }
        | Event::Wrote { lease, .. }
        | Event::ClosedUntil { lease, .. }
        | Event::Released { lease, .. }
        | Event::ToldGone { lease, .. }
        | Event::Lost { lease, .. } => *lease == id(n),
        Event::Asked { .. }
        | Event::Incremented { .. }
        | Event::CounterRead { .. }
        | Event::GaveUp { .. }
        | Event::Unpolled { .. }
        | Event::Calm { .. }
        | Event::Steady { .. }
        | Event::Keeps { .. }
        | Event::Spied { .. } => false,
    };
    let mut events = good();
    events.iter_mut().filter(|event| of_lease(event)).for_each(&mut change);
    events.into_iter().collect()
}

/// The violations of a history, which has some.
fn violations(history: &History) -> Vec<Violation> {
    history.check().unwrap_err()
}

#[test]
fn a_good_history_holds_together_in_any_order_of_recording() {
    let history = History::new();
    for event in good() {
        history.record(event);
    }
    let summary = history.check_strictly().unwrap();
    let expected = Summary {
        takeovers: 0,
        behind: 0,
        aside: 0,
        asked: 20,
        leases: 20,
        released: 16,
        lost: 4,
        accepted: 20,
        refused: 4,
        refused_in_belief: 0,
        increments: 20,
        overlaps: Vec::new(),
        turns: 0,
        kept: 0,
        tightest: 0,
        longest_gap: Duration::ZERO,
    };
    assert_eq!(summary, expected);
    let reversed: History = good().into_iter().rev().collect();
    assert_eq!(reversed.check_strictly(), Ok(expected));
    assert_eq!(History::new().check_strictly(), Ok(Summary::default()));
}

#[test]
fn a_token_of_two_leases_is_found() {
    let history = corrupt(7, |event| {
        if let Event::Granted { fence, .. } = event {
            *fence = token(6);
        }
    });
    let (fence, first, second) = (token(6), id(6), id(7));
    assert_eq!(violations(&history), [Violation::SharedToken { fence, first, second }]);
}

#[test]
fn a_lease_of_two_tokens_is_found() {
    let mut events = good();
    let (worker, lease, second) = (1, id(7), fence(token(7).get() + 1));
    let (asked_at, granted_at) = (at(650), at(705));
    events.push(Event::Granted { worker, fence: second, lease, asked_at, granted_at });
    let history: History = events.into_iter().collect();
    assert_eq!(violations(&history), [Violation::TwoTokens { lease, first: token(7), second }]);
    // Told again with the same token, it is one grant.
    let mut events = good();
    events.push(Event::Granted { worker, fence: token(7), lease, asked_at, granted_at });
    let summary = events.into_iter().collect::<History>().check().unwrap();
    assert_eq!(summary.leases, 20);
}

#[test]
fn a_token_below_that_of_an_earlier_grant_is_found() {
    let lower = fence(token(6).get() - 1);
    let history = corrupt(7, |event| {
        if let Event::Granted { fence, .. } = event {
            *fence = lower;
        }
    });
    let violation = Violation::TokenFell { earlier: (id(6), token(6)), later: (id(7), lower) };
    assert!(violation.to_string().contains("below 112"), "{violation}");
    assert_eq!(violations(&history), [violation]);
}

#[test]
fn a_turn_that_was_lost_unseen_may_hand_on_older_tokens_and_not_write_with_them() {
    let lower = fence(token(6).get() - 1);
    let late = |writes: bool| {
        corrupt(7, |event| match event {
            Event::Granted { fence, .. } => *fence = lower,
            Event::Wrote { fence, .. } if writes => *fence = lower,
            _ => {}
        })
    };
    assert!(late(false).check_with_lost_turns().is_ok());
    let found = late(true).check_with_lost_turns().unwrap_err();
    assert!(found.iter().any(|one| matches!(one, Violation::StaleWrite { .. })), "{found:?}");
}

#[test]
fn tokens_of_concurrent_questions_may_come_in_any_order() {
    let lower = fence(token(6).get() - 1);
    let history = corrupt(7, |event| {
        // Asked for before the grant of lease 6 came.
        if let Event::Granted { fence, asked_at, .. } = event {
            (*fence, *asked_at) = (lower, at(600));
        }
    });
    assert!(history.check_strictly().is_ok());
}

#[test]
fn a_stale_write_that_was_accepted_is_found() {
    let history = corrupt(9, |event| {
        if let Event::Wrote { accepted, .. } = event {
            *accepted = true;
        }
    });
    // Lease 9 wrote again after lease 10 had.
    let violation = Violation::StaleWrite { highest: token(10), accepted: token(9), order: 21 };
    assert_eq!(violations(&history), [violation]);
}

#[test]
fn a_write_under_the_token_of_another_lease_is_found() {
    let history = corrupt(7, |event| {
        if let Event::Wrote { fence, .. } = event {
            *fence = token(6);
        }
    });
    let (fence, first, second) = (token(6), id(6), id(7));
    assert_eq!(violations(&history), [Violation::SharedWrite { fence, first, second }]);
}

#[test]
fn a_lost_update_is_found() {
    let mut events = good();
    events.pop();
    events.push(Event::CounterRead { value: 19 });
    let history: History = events.into_iter().collect();
    assert_eq!(violations(&history), [Violation::LostUpdate { accepted: 20, found: 19 }]);
}

#[test]
fn two_believers_are_reported_and_strictly_a_violation() {
    let history = corrupt(7, |event| match event {
        // Believed beyond the grant of lease 8, and released later still.
        Event::BelievedUntil { until, .. } => *until = at(825),
        Event::Released { at: released_at, .. } => *released_at = at(830),
        _ => {}
    });
    let (first, second, by) = (id(7), id(8), Duration::from_millis(25));
    let overlap = Overlap { first, second, by };
    assert_eq!(history.check().unwrap().overlaps, std::slice::from_ref(&overlap));
    assert_eq!(history.check_strictly(), Err(vec![Violation::TwoBelievers(overlap)]));
}

#[test]
fn a_refusal_of_a_believed_lease_is_counted() {
    let history = corrupt(7, |event| {
        if let Event::Wrote { accepted, .. } = event {
            *accepted = false;
        }
    });
    let summary = history.check().unwrap();
    assert_eq!((summary.refused, summary.refused_in_belief), (5, 1));
}
