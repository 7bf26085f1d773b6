use std::time::Duration;

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId, seam::Part};
use uuid::Uuid;

use super::{Deed, Event, History, Violation};

mod failover;

const fn ms(millis: u64) -> Instant {
    Instant::at(Duration::from_millis(millis))
}

fn id(runtime: u128, number: u64) -> AcquisitionId {
    AcquisitionId::new(RuntimeId::new(Uuid::from_u128(runtime)), number)
}

fn token(fence: u64) -> Fence {
    Fence::try_from(fence).unwrap()
}

fn spied(at: u64, deed: Deed) -> Event {
    Event::Spied { at: ms(at), deed }
}

fn minted(at: u64, id: AcquisitionId, first: u64, last: u64) -> Event {
    spied(at, Deed::Minted { id, first: token(first), last: token(last) })
}

fn queued(at: u64, id: AcquisitionId) -> Event {
    spied(at, Deed::Queued { id, live_until: ms(at + 100), refreshed: true })
}

/// A lease that a task has from `at` on, and believes in for 50 ms.
fn granted(at: u64, lease: AcquisitionId, fence: u64) -> [Event; 2] {
    let (fence, granted_at, until) = (token(fence), ms(at), ms(at + 50));
    let granted = Event::Granted { worker: 0, fence, lease, asked_at: granted_at, granted_at };
    [granted, Event::BelievedUntil { lease, until }]
}

fn released(at: u64, lease: AcquisitionId) -> Event {
    Event::Released { lease, at: ms(at) }
}

/// The violations of a history that is told as it happened.
fn found(events: impl IntoIterator<Item = Event>) -> Vec<Violation> {
    let history: History = events.into_iter().collect();
    history.check_strictly().err().unwrap_or_default()
}

fn with(one: impl IntoIterator<Item = Event>, more: impl IntoIterator<Item = Event>) -> Vec<Event> {
    one.into_iter().chain(more).collect()
}

/// A turn of runtime 1 with two leases.
fn turn() -> Vec<Event> {
    let [one, until_one] = granted(2, id(1, 5), 10);
    let [two, until_two] = granted(9, id(1, 6), 11);
    vec![
        spied(0, Deed::AskSent { id: id(1, 1) }),
        minted(1, id(1, 1), 10, 20),
        one,
        until_one,
        released(8, id(1, 5)),
        two,
        until_two,
        released(12, id(1, 6)),
        spied(12, Deed::ReleaseSent { id: id(1, 1), first: token(10) }),
        spied(13, Deed::Ended { id: id(1, 1), first: token(10) }),
    ]
}

#[test]
fn a_turn_is_in_order() {
    assert_eq!(found(turn()), []);
}

#[test]
fn blocks_that_do_not_grow_and_foreign_tokens_are_found() {
    let more = [minted(20, id(2, 1), 20, 30)];
    let (earlier, later) = ((id(1, 1), token(20)), (id(2, 1), token(20)));
    assert_eq!(found(with(turn(), more)), [Violation::BlockFell { earlier, later }]);
    let (lease, fence) = (id(2, 7), token(15));
    let foreign = found(with(turn(), granted(20, lease, 15)));
    assert_eq!(foreign, [Violation::ForeignToken { lease, fence }]);
}

#[test]
fn a_second_turn_of_an_acquisition_is_found() {
    let more = with([minted(20, id(1, 1), 30, 40)], granted(21, id(1, 8), 30));
    let (id, first, second) = (id(1, 1), token(10), token(30));
    assert_eq!(found(with(turn(), more)), [Violation::TwoTurns { id, first, second }]);
}

#[test]
fn a_lease_of_a_turn_whose_end_was_sent_is_found() {
    let lease = id(1, 7);
    let first = token(10);
    let late = with(turn(), granted(20, lease, 12));
    assert_eq!(found(late), [Violation::TakenAfterEnd { lease, first }]);
}

#[test]
fn what_is_asked_released_and_renewed_after_the_end_is_found() {
    let (id, first, at) = (id(1, 1), token(10), ms(30));
    let after = |deed| found(with(turn(), [spied(30, deed)]));
    assert_eq!(after(Deed::AskSent { id }), [Violation::IdReused { id, at }]);
    assert_eq!(after(Deed::RenewalSent { id, first }), [Violation::IdleRenewal { id, first, at }]);
    assert_eq!(after(Deed::Extended { id, first }), [Violation::WrongLease { id, first, at }]);
    let orphan = spied(30, Deed::ReleaseSent { id, first: token(50) });
    let expected = Violation::OrphanReleased { id, first: token(50), at };
    assert_eq!(found(with(turn(), [orphan])), [expected]);
    let withdrawn = spied(29, Deed::WithdrawSent { id });
    assert_eq!(found(with(turn(), [withdrawn, orphan])), [], "no grant of it stands");
}

#[test]
fn the_withdrawn_are_served_no_more() {
    let (dead, at) = (id(1, 3), ms(2));
    let events = [spied(1, Deed::Withdrawn { id: dead }), queued(2, dead)];
    assert_eq!(found(events), [Violation::DeadServed { id: dead, at }]);
    // Unless the server has forgotten it.
    let events = [spied(1, Deed::Withdrawn { id: dead }), spied(1, Deed::Forgot), queued(2, dead)];
    assert_eq!(found(events), []);
}

#[test]
fn nobody_passes_over_a_live_place() {
    let (waiting, granted) = (id(1, 1), id(2, 1));
    let events = |at| [queued(1, waiting), queued(2, granted), minted(at, granted, 10, 20)];
    let at = ms(100);
    assert_eq!(found(events(100)), [Violation::PassedOver { granted, waiting, at }]);
    assert_eq!(found(events(101)), [], "it is dead by then");
    let withdrawn = [queued(1, waiting), spied(2, Deed::Withdrawn { id: waiting })];
    assert_eq!(found(with(withdrawn, [queued(2, granted), minted(3, granted, 10, 20)])), []);
}

#[test]
fn a_live_place_is_given_up_only_by_a_withdrawal() {
    let (id, asks, at) = (id(1, 1), id(1, 2), ms(5));
    let anew =
        [spied(1, Deed::AskSent { id }), queued(1, id), spied(5, Deed::AskSent { id: asks })];
    assert_eq!(found(anew), [Violation::PlaceGivenUp { id, asks, at }]);
    assert_eq!(found(with(anew, [spied(6, Deed::WithdrawSent { id })])), []);
    assert_eq!(found(with(anew, [spied(6, Deed::Crashed { runtime: id.runtime() })])), []);
}

#[test]
fn belief_ends_where_the_server_lost_its_data_or_the_process_its_life() {
    let other = with([minted(20, id(2, 1), 30, 40)], granted(20, id(2, 5), 30));
    let one = with([minted(1, id(1, 1), 10, 20)], granted(2, id(1, 5), 10));
    let overlap = found(with(one.clone(), other.clone()));
    assert!(matches!(overlap[..], [Violation::TwoBelievers(_)]), "{overlap:?}");
    for deed in [
        Deed::Forgot,
        Deed::Forced { first: token(10) },
        Deed::Crashed { runtime: id(1, 1).runtime() },
    ] {
        let events = with(with(one.clone(), [spied(20, deed)]), other.clone());
        assert_eq!(found(events), [], "{deed:?}");
    }
}

#[test]
fn a_wait_in_vain_is_found() {
    let [granted, believed] = granted(40, id(1, 5), 10);
    let patience = Duration::from_millis(30);
    let calm = |from| Event::Calm { from: ms(from), until: ms(500), patience };
    let waits = |from| {
        let asked = Event::Asked { worker: 0, at: ms(1) };
        [asked, granted, believed, calm(from)]
    };
    let expected = Violation::NobodyServed { from: ms(1), until: ms(40), patience };
    assert_eq!(found(waits(0)), [expected]);
    assert_eq!(found(waits(10)), [], "something went wrong until then");
    let gave_up =
        [Event::Asked { worker: 0, at: ms(1) }, Event::GaveUp { worker: 0, at: ms(1) }, calm(0)];
    assert_eq!(found(gave_up), []);
}

#[test]
fn a_task_that_is_not_polled_waits_for_nothing_and_keeps_others_out_for_a_claim_window() {
    let (claim_window, patience) = (Duration::from_millis(40), Duration::from_millis(30));
    let asked = |worker, at| Event::Asked { worker, at: ms(at) };
    let unpolled = |from, until| {
        let (from, until, runtime) = (ms(from), ms(until), id(1, 1).runtime());
        Event::Unpolled { worker: 0, runtime, from, until, claim_window }
    };
    let gave_up = |at| Event::GaveUp { worker: 0, at: ms(at) };
    let calm = Event::Calm { from: ms(0), until: ms(300), patience };
    let in_vain =
        |from, until| [Violation::NobodyServed { from: ms(from), until: ms(until), patience }];

    assert_eq!(found([asked(0, 1), unpolled(2, 200), gave_up(210), calm]), []);
    let polled = [asked(0, 1), unpolled(2, 200), gave_up(250), calm];
    assert_eq!(found(polled), in_vain(200, 250), "it was polled");
    assert_eq!(found([asked(0, 1), unpolled(20, 200), gave_up(60), calm]), [], "it went before");

    let (one, other) = (id(1, 1), id(2, 1));
    let others = |grant, until| {
        [
            asked(0, 1),
            asked(1, 1),
            grant,
            unpolled(20, 200),
            gave_up(200),
            Event::GaveUp { worker: 1, at: ms(until) },
            calm,
        ]
    };
    let granted = |id| minted(10, id, 10, 20);
    assert_eq!(found(others(granted(one), 90)), [], "from 20 on it is kept for the task, to 60");
    assert_eq!(found(others(granted(one), 91)), in_vain(60, 91));
    let later = with([asked(0, 1), unpolled(2, 200), asked(1, 80)], [minted(100, one, 10, 20)]);
    let later = with(later, [Event::GaveUp { worker: 1, at: ms(171) }, gave_up(200), calm]);
    assert_eq!(found(later), in_vain(140, 171), "it was granted while the task was not polled");
    assert_eq!(found(others(granted(other), 90)), in_vain(1, 90), "another runtime was granted it");
    let ended = spied(30, Deed::Withdrawn { id: one });
    let taken_back = with([granted(one), ended], others(queued(1, other), 61));
    assert_eq!(found(taken_back), in_vain(30, 61));
}

#[test]
fn an_idle_turn_that_ends_early_is_found() {
    let (id, first) = (id(1, 1), token(10));
    let [idle, ttl, to_enter] = [30, 200, 10].map(Duration::from_millis);
    let ends = |at, before: &[Event], after: &[Event]| {
        let mut events = with([minted(1, id, 10, 20)], granted(2, id, 10));
        events.push(released(8, id));
        events.extend_from_slice(before);
        events.push(spied(at, Deed::ReleaseSent { id, first }));
        events.extend_from_slice(after);
        found(with(events, [Event::Keeps { idle, ttl, to_enter }]))
    };
    let early = |at| [Violation::IdleEnded { id, first, at: ms(at) }];

    assert_eq!(ends(8, &[], &[]), [], "it was not idle");
    assert_eq!(ends(37, &[], &[]), early(37));
    assert_eq!(ends(38, &[], &[]), [], "its time is over, but for what a clock may be off");
    assert_eq!(ends(20, &[spied(9, Deed::Wanted { first })], &[]), []);
    assert_eq!(ends(20, &[spied(9, Deed::Wanted { first: token(5) })], &[]), early(20));
    let asks = Deed::AskSent { id: AcquisitionId::new(id.runtime(), 2) };
    assert_eq!(ends(20, &[], &[spied(20, asks)]), [], "a task needs another turn");
    let until = ms(40);
    let believed = [Event::BelievedUntil { lease: id, until }];
    assert_eq!(ends(29, &believed, &[]), early(29));
    assert_eq!(ends(30, &believed, &[]), [], "too little belief is left to enter");
}

#[test]
fn a_turn_that_is_kept_too_soon_after_a_recall_is_found() {
    let keeps = |millis| Duration::from_millis(millis);
    let keeps = Event::Keeps { idle: keeps(30), ttl: keeps(200), to_enter: keeps(10) };
    // A turn from `at` on, which is idle for a while after its first lease.
    let turn = |at: u64, wanted: bool| {
        let (id, first) = (id(1, at), token(at * 10));
        let mut events = with([minted(at, id, at * 10, at * 10 + 9)], granted(at, id, at * 10));
        events.push(released(at + 1, id));
        events.extend(wanted.then(|| spied(at + 2, Deed::Wanted { first })));
        events.push(spied(at + 3, Deed::ReleaseSent { id, first }));
        events
    };
    let lease = |at: u64| {
        let id = id(1, at);
        let leases = with([minted(at, id, at * 10, at * 10 + 9)], granted(at, id, at * 10));
        let ended = spied(at, Deed::ReleaseSent { id, first: token(at * 10) });
        with(leases, [released(at, id), ended])
    };
    let again = [Violation::KeptAgain { id: id(1, 80), first: token(800), at: ms(83) }];
    let after = |leases: &[u64]| {
        let between = leases.iter().flat_map(|at| lease(*at));
        found(with(with(turn(10, true), between), with(turn(80, true), [keeps])))
    };
    assert_eq!(after(&[]), again);
    assert_eq!(after(&[20, 30]), again);
    assert_eq!(after(&[20, 30, 40]), []);
    let unwanted = with(turn(10, false), with(turn(80, true), [keeps]));
    let (id, first, at) = (id(1, 10), token(100), ms(13));
    assert_eq!(found(unwanted), [Violation::IdleEnded { id, first, at }], "there was no recall");
}

#[test]
fn a_lock_that_stays_closed_is_opened_by_nobody_before_its_time() {
    let (lease, next) = (id(1, 1), id(2, 1));
    let closed = |until| Event::ClosedUntil { lease, from: ms(0), until: ms(until) };
    let held =
        |until| with([minted(0, lease, 10, 10)], with(granted(0, lease, 10), [closed(until)]));
    let ended = |at| spied(at, Deed::Ended { id: lease, first: token(10) });
    let kept = |at, until| spied(at, Deed::Kept { id: lease, first: token(10), until: ms(until) });
    let early = |at, until| Violation::OpenedEarly { id: lease, at: ms(at), until: ms(until) };
    let opened = |events: Vec<Event>| {
        let is_early = |one: &Violation| matches!(one, Violation::OpenedEarly { .. });
        found(events).into_iter().filter(is_early).collect::<Vec<_>>()
    };
    let gives_back = |deeds: Vec<Event>| with(held(100), with([released(20, lease)], deeds));

    assert_eq!(opened(gives_back(vec![ended(20)])), [early(20, 100)], "by a release");
    assert_eq!(opened(gives_back(vec![ended(100)])), []);
    assert_eq!(opened(gives_back(vec![kept(20, 60)])), [early(60, 100)], "kept for too short");
    let taken = |at| gives_back(vec![kept(20, 100), minted(at, next, 20, 20)]);
    assert_eq!(opened(taken(99)), [early(99, 100)], "granted before its time");
    assert_eq!(opened(taken(100)), []);
    let forced = spied(50, Deed::Forced { first: token(10) });
    let by_force = gives_back(vec![kept(20, 100), forced, minted(50, next, 20, 20)]);
    assert_eq!(opened(by_force), [], "an operator may");
}

/// Nothing but single messages goes wrong from 0 to 2 s.
fn steady() -> Event {
    Event::Steady { from: ms(0), until: ms(2_000), takes_all: true }
}

#[test]
fn a_grant_that_nobody_takes_is_found_while_all_stay() {
    let wasted = minted(20, id(2, 1), 30, 40);
    assert_eq!(found(with(turn(), [wasted])), []);
    let (id, first, at) = (id(2, 1), token(30), ms(20));
    let expected = [Violation::GrantWasted { id, first, at }];
    assert_eq!(found(with(turn(), [wasted, steady()])), expected);
    // Shortly before the end nobody need have taken it yet.
    let early = Event::Steady { from: ms(0), until: ms(100), takes_all: true };
    assert_eq!(found(with(turn(), [wasted, early])), []);
}

#[test]
fn a_place_that_dies_is_found_while_all_stay() {
    let (held, waits) = (turn(), [queued(5, id(2, 1))]);
    let late = [queued(200, id(2, 1)), steady()];
    let (id_2, live_until) = (id(2, 1), ms(105));
    let expected = [Violation::PlaceDied { id: id_2, live_until }];
    assert_eq!(found(with(held.clone(), with(waits, late))), expected);
    let in_time = [queued(90, id(2, 1)), queued(180, id(2, 1)), steady()];
    assert_eq!(found(with(held.clone(), with(waits, in_time))), []);
    // One that its runtime gave up may die.
    let withdrawn = spied(50, Deed::WithdrawSent { id: id(2, 1) });
    let others = [withdrawn, spied(50, Deed::Withdrawn { id: id(2, 1) }), queued(200, id(3, 1))];
    assert_eq!(found(with(held, with(with(waits, others), [steady()]))), []);
}

#[test]
fn a_loss_that_nothing_brought_about_is_found() {
    let lease = id(1, 6);
    let [taken, believed] = granted(9, lease, 11);
    let (grant, told) = (minted(1, id(1, 1), 10, 20), Event::ToldGone { lease, at: ms(20) });
    let lost = Event::Lost { lease, at: ms(20) };
    let for_nothing = [grant, taken, believed, told, lost];
    let at = ms(20);
    assert_eq!(found(for_nothing), [Violation::LostForNothing { lease, at }]);
    for deed in [
        Deed::Withdrawn { id: id(1, 1) },
        Deed::Forced { first: token(10) },
        Deed::PartLost { part: Part::Lock },
        Deed::Forgot,
    ] {
        assert_eq!(found(with([grant, taken, believed, spied(15, deed)], [told, lost])), []);
    }
}
