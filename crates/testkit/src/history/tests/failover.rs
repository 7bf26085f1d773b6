use super::*;

/// Another server takes over; nobody stands by what was granted before, or all is stood by.
fn took_over(at: u64, is_behind: bool, forsakes: Option<u64>) -> Event {
    let forsakes = forsakes.map(Duration::from_millis);
    spied(at, Deed::TookOver { stands: None, is_behind, forsakes })
}

/// A server that is a master no more grants the lock to runtime 3.
fn aside(at: u64, first: u64, is_void: bool) -> Event {
    let (id, first, last) = (id(3, 1), token(first), token(first + 10));
    spied(at, Deed::MintedAside { id, first, last, is_void })
}

#[test]
fn belief_goes_on_across_a_failover_unless_it_is_forsaken() {
    let found = |forsakes| {
        let before = with([minted(1, id(1, 1), 10, 20)], granted(2, id(1, 5), 10));
        let after = with([minted(6, id(2, 1), 30, 40)], granted(7, id(2, 5), 30));
        found(with(with(before, [took_over(5, true, forsakes)]), after))
    };
    assert_eq!(found(Some(0)), []);
    let overlaps = found(None);
    assert!(matches!(overlaps[..], [Violation::TwoBelievers(_)]), "{overlaps:?}");
}

#[test]
fn tokens_grow_across_a_failover() {
    let found = |granted_at: u64, forsakes| {
        let id_of = |runtime| id(runtime, 1);
        let before =
            with([minted(granted_at, id_of(1), 30, 40)], granted(granted_at, id(1, 5), 30));
        let ended = with(before, [released(granted_at, id(1, 5))]);
        let after = with([minted(12, id_of(2), 10, 20)], granted(13, id(2, 5), 10));
        found(with(with(ended, [took_over(10, true, forsakes)]), after))
    };
    let (earlier, later) = ((id(1, 5), token(30)), (id(2, 5), token(10)));
    let fell = [Violation::TokenFell { earlier, later }];
    assert_eq!(found(2, None), fell);
    assert_eq!(found(2, Some(3)), fell, "it was long before");
    // An outage that is shorter than the clock is behind promises nothing.
    assert_eq!(found(8, Some(3)), []);
    assert_eq!(found(8, None), fell);
}

#[test]
fn what_an_old_master_grants_counts_for_those_who_could_know() {
    let found = |is_void| {
        let new = with(
            [took_over(5, false, None), minted(6, id(2, 1), 10, 20)],
            granted(7, id(2, 5), 10),
        );
        found(with(with(new, [aside(8, 10, is_void)]), granted(9, id(3, 5), 10)))
    };
    assert_eq!(found(true), []);
    let violations = found(false);
    let shared = Violation::SharedToken { fence: token(10), first: id(2, 5), second: id(3, 5) };
    assert!(violations.contains(&shared), "{violations:?}");
    let overlaps = |violation: &Violation| matches!(violation, Violation::TwoBelievers(_));
    assert!(violations.iter().any(overlaps), "{violations:?}");
}

#[test]
fn a_queue_that_is_behind_may_have_another_order() {
    let found = |is_behind| {
        let before = [queued(1, id(1, 1)), queued(2, id(2, 1)), took_over(3, is_behind, None)];
        found(with(before, [queued(4, id(1, 1)), minted(5, id(2, 1), 10, 20)]))
    };
    assert_eq!(found(true), []);
    let (granted, waiting, at) = (id(2, 1), id(1, 1), ms(5));
    assert_eq!(found(false), [Violation::PassedOver { granted, waiting, at }]);
}

#[test]
fn how_long_a_place_lives_that_another_master_knew_is_told_by_its_next_heartbeat() {
    let found = |refreshed| {
        let told = Deed::Queued { id: id(1, 1), live_until: ms(104), refreshed };
        let events = [queued(1, id(1, 1)), took_over(3, true, None), spied(4, told)];
        found(with(events, [minted(5, id(2, 1), 10, 20)]))
    };
    assert_eq!(found(false), []);
    let (granted, waiting, at) = (id(2, 1), id(1, 1), ms(5));
    assert_eq!(found(true), [Violation::PassedOver { granted, waiting, at }]);
}

#[test]
fn the_lease_that_stands_on_the_new_master_is_the_one_that_commands_change() {
    let (id, first, at) = (id(1, 1), token(10), ms(6));
    let found = |stands| {
        let took_over = Deed::TookOver { stands, is_behind: true, forsakes: None };
        let extended = spied(6, Deed::Extended { id, first });
        found([minted(1, id, 10, 20), spied(5, took_over), extended])
    };
    assert_eq!(found(Some((id, first))), []);
    assert_eq!(found(None), [Violation::WrongLease { id, first, at }]);
}
