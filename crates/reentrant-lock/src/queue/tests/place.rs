use std::sync::Arc;

use super::*;

#[test]
fn the_last_task_that_leaves_withdraws_the_place_for_good() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let ((), effects) = scene.with(|state, env| state.leave(env, lead));
    assert_eq!(withdrawn(&effects), [lead]);
    assert!(scene.state.is_done());
    let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
    assert_eq!(withdrawn(&effects), [lead], "a grant that crossed it");
}

#[test]
fn a_turn_begins_once_however_often_its_grant_arrives() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let granted = grant(10, 20, 3000, false);
    let _ = scene.push(lead, &granted, 1);
    assert_eq!(scene.takes(lead), 10);
    let again = scene.join();
    let effects = scene.push(lead, &granted, 1);
    assert!(effects.withdraw.is_empty() && effects.wake.is_empty());
    scene.waits(again);
}

#[test]
fn a_push_counts_from_its_heartbeat_and_one_that_is_gone_costs_no_place() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    scene.pass(3100);
    let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
    let Some(Outgoing::Confirm(doubtful)) = effects.send else { panic!("it is confirmed first") };
    scene.waits(lead);
    let answer = TimedAnswer { sent_at: scene.now, result: Ok(RenewAnswer::Gone) };
    let _ = scene.with(|state, env| state.on_confirmation(env, *doubtful, answer));
    let beat = scene.with(NameState::on_timer).0.expect("it asks again at once");
    assert_eq!(beat.waiter.id.number(), lead, "under the same id");
}

/// A store that lost its data grants the lock once more to a late copy of an old question.
#[test]
fn an_id_that_had_a_lease_is_never_granted_another() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.granted(lead, 10, 20, false);
    let id = scene.numbers.acquisition_id(&scene.name, lead);
    let mut heard = |first| {
        let result = Ok(AcquireAnswer::Granted(grant(first, first, 1_000, false)));
        let answer = TimedAnswer { sent_at: scene.now, result };
        scene.with(|state, env| state.on_reply(env, id, answer)).1
    };
    assert!(heard(10).withdraw.is_empty(), "the same grant is no news");
    assert!(heard(5).withdraw.is_empty(), "an older one ran out before this one");
    assert_eq!(withdrawn(&heard(30)), [lead]);
}

/// A grant that was ended by force before its answer came begins no turn; the control takes it for
/// new.
#[test]
fn a_grant_that_is_gone_before_its_answer_comes_begins_no_turn() {
    for believes_all in [false, true] {
        let mut scene = Scene::new();
        if believes_all {
            scene.rules.is_news = |_, _| true;
        }
        let lead = scene.join();
        let id = scene.numbers.acquisition_id(&scene.name, lead);
        let _ =
            scene.with(|state, env| state.on_force_released(env, TurnId { id, first: fence(10) }));
        match scene.answer(lead, AcquireAnswer::Granted(grant(10, 10, 30_000, false))) {
            Poll::Ready(Ok(_)) => assert!(believes_all, "it is gone"),
            Poll::Pending => assert!(!believes_all, "the control takes it"),
            Poll::Ready(Err(error)) => panic!("{error:?}"),
        }
    }
}

/// A grant that was ended by force before its answer came is no reason for a try to wait.
#[test]
fn a_try_whose_grant_is_gone_already_fails_and_leaves_nothing() {
    let mut scene = Scene::new();
    let (lead, _) = scene.join_as(true);
    let id = scene.numbers.acquisition_id(&scene.name, lead);
    let ((), gone) =
        scene.with(|state, env| state.on_force_released(env, TurnId { id, first: fence(10) }));
    assert!(gone.withdraw.is_empty());
    let result = Ok(AcquireAnswer::Granted(grant(10, 10, 30_000, false)));
    let answer = TimedAnswer { sent_at: scene.now, result };
    let (asked, effects) = scene.with(|state, env| state.on_first_reply(env, lead, true, answer));
    assert!(matches!(asked, Poll::Ready(Err(NoLease::Failed(_)))), "{asked:?}");
    assert_eq!(withdrawn(&effects), [lead]);
    assert!(scene.state.is_done());
}

/// The failure of an old heartbeat comes when the next one is almost due: that is not put off.
#[test]
fn a_late_failure_puts_no_heartbeat_off() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let failure = || StoreError::new(StoreErrorKind::Indeterminate, "nothing was heard", "wait");
    for round in 0..8 {
        let due = scene.with(|state, env| state.look_at(env)).0.expect("a place is asked for");
        scene.now = due.max(scene.now);
        let sent_at = scene.now;
        let (beat, _) = scene.with(NameState::on_timer);
        let id = beat.expect("a heartbeat is due").waiter.id;
        scene.pass(700);
        let answer = TimedAnswer { sent_at, result: Err(failure()) };
        let _ = scene.with(|state, env| state.on_reply(env, id, answer));
        let next = scene.with(|state, env| state.look_at(env)).0.expect("a place is asked for");
        let after = next.saturating_since(sent_at);
        assert!(after <= Duration::from_millis(750), "round {round}: {after:?}");
    }
}

#[test]
fn a_grant_of_an_id_that_is_being_withdrawn_is_not_withdrawn_again() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let ((), effects) = scene.with(|state, env| state.leave(env, lead));
    let (id, _) = effects.withdraw[0];
    let ((), _) = scene.with(|state, _| state.withdrawals.add(id, Arc::default()));
    let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
    assert!(effects.withdraw.is_empty(), "one withdrawal ends it");
}

/// The runtime forgets the fences of a name that it holds for long, but a turn knows its own.
#[test]
fn a_place_after_a_turn_tells_the_fence_of_that_turn() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let taken = scene.granted(lead, 10, 10, false);
    let _waiting = scene.join();
    let turn = TurnId::of(&taken.turn);
    let _ = scene.with(|state, env| state.on_lost(env, turn, LossReason::Gone, None));
    let beat = scene.with(NameState::on_timer).0.expect("it queues anew");
    assert_eq!(beat.waiter.watermark, Some(fence(10)));
}

/// A heartbeat whose answer cannot come in time costs the server as much as another: such a place is
/// asked for seldom.
#[test]
fn a_ttl_that_is_too_short_for_the_server_is_asked_for_seldom() {
    let mut scene = Scene::new();
    let ttl = Ttl::new(Duration::from_millis(100)).unwrap();
    scene.terms = Terms::without_acks(ttl);
    let lead = scene.join();
    let id = scene.numbers.acquisition_id(&scene.name, lead);
    let failure = || StoreError::ttl_too_short(ttl, Duration::from_millis(120));
    let (start, mut asked) = (scene.now, 0);
    let answer = TimedAnswer { sent_at: start, result: Err(failure()) };
    let (first, _) = scene.with(|state, env| state.on_first_reply(env, lead, false, answer));
    assert!(first.is_pending());
    while scene.now < start + Duration::from_secs(30) {
        let due = scene.with(|state, env| state.look_at(env)).0.expect("a place is asked for");
        scene.now = due;
        let (beat, _) = scene.with(NameState::on_timer);
        let sent_at = scene.now;
        beat.expect("a heartbeat is due");
        asked += 1;
        scene.pass(100);
        let answer = TimedAnswer { sent_at, result: Err(failure()) };
        let _ = scene.with(|state, env| state.on_reply(env, id, answer));
    }
    assert!((3..=6).contains(&asked), "{asked} heartbeats in half a minute");
}
