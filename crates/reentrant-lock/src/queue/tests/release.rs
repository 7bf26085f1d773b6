use super::*;

#[test]
fn a_task_that_drops_its_guard_and_joins_again_queues_with_the_release() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 25, true);
    let (after, effects) = scene.end(10, None, true);
    let end = release_of(&effects);
    assert!(after.is_none() && effects.settled.is_none(), "the runtime sends and counts it");
    let back = scene.join();
    let next = scene.send(&end);
    assert!(next > Some(back), "under a fresh id");
    assert_eq!(scene.send(&end), next, "the same with every copy");
    scene.waits(back);
    let granted = ReleaseAnswer::NextGranted(grant(30, 40, 3000, false));
    let _ = scene.released(&end, Ok(granted));
    assert_eq!(scene.takes(back), 30);
}

#[test]
fn a_task_that_joins_after_the_release_was_sent_does_not_queue_with_it() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 25, true);
    let (_, effects) = scene.end(10, None, true);
    let end = release_of(&effects);
    assert_eq!(scene.send(&end), None);
    let late = scene.join();
    assert_eq!(scene.send(&end), None);
    scene.waits(late);
}

#[test]
fn a_task_that_joins_during_a_release_asks_when_that_is_answered() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 20, false);
    let (Some(end), _) = scene.release(10) else { panic!("its holder ends it") };
    let late = scene.join();
    scene.waits(late);
    let (_, effects) = scene.released(&end, Ok(ReleaseAnswer::Released));
    assert!(
        matches!(effects.send, Some(Outgoing::Heartbeat(beat)) if beat.waiter.id.number() > late)
    );
}

#[test]
fn a_task_that_joins_during_a_release_without_an_answer_asks_after_a_heartbeat() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 20, false);
    let (Some(end), _) = scene.release(10) else { panic!("its holder ends it") };
    scene.pass(749);
    let late = scene.join();
    assert!(scene.with(NameState::on_timer).0.is_none());
    scene.pass(1);
    assert_eq!(scene.with(|state, env| state.look_at(env)).0, Some(scene.now));
    let (beat, effects) = scene.with(NameState::on_timer);
    assert!(beat.is_some_and(|beat| beat.waiter.id.number() > late), "under a fresh id");
    assert_eq!(withdrawn(&effects), [lead]);
    let (_, effects) = scene.released(&end, Ok(ReleaseAnswer::Gone));
    assert!(sends_nothing(&effects) && effects.withdraw.is_empty());
    scene.waits(late);
}

#[test]
fn a_release_that_was_refused_is_withdrawn_unless_the_lock_is_to_stay_closed() {
    let refusal = || StoreError::new(StoreErrorKind::Config, "no", "ask");
    for closed in [None, Some(60_000)] {
        let mut scene = Scene::new();
        let lead = scene.join();
        let _ = scene.granted(lead, 10, 20, false);
        let (_, effects) = scene.end(10, closed, true);
        let end = release_of(&effects);
        scene.send(&end);
        scene.join();
        let (_, effects) = scene.released(&end, Err(refusal()));
        let withdrawn = withdrawn(&effects);
        assert_eq!(withdrawn, if closed.is_none() { vec![lead] } else { vec![] });
        assert!(scene.with(NameState::on_timer).0.is_some(), "the task that came later asks");
    }
}

#[test]
fn what_follows_a_release_counts_from_the_copy_that_was_answered() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 10, false);
    let (_, effects) = scene.release(10);
    let end = release_of(&effects);
    let lost = StoreError::new(StoreErrorKind::Indeterminate, "nothing was heard", "repeat it");
    assert!(scene.send(&end).is_some());
    let (again, _) = scene.released(&end, Err(lost));
    assert!(again);
    scene.pass(100);
    let sent_at = scene.now;
    let granted = ReleaseAnswer::NextGranted(grant(30, 40, 3000, false));
    let _ = scene.released(&end, Ok(granted));
    let Poll::Ready(Ok(taken)) = scene.poll(second) else { panic!("it is the second's turn") };
    assert_eq!(taken.until, sent_at + Duration::from_millis(2970));
}

#[test]
fn a_lock_that_stays_closed_ends_the_turn_and_the_waiting_task_asks_anew() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    let (after, _) = scene.end(10, Some(5_000), false);
    let Some(end) = after else { panic!("its holder awaits the answer: {after:?}") };
    assert!(end.closed_until.is_some());
    scene.waits(second);
    let kept = ReleaseAnswer::Kept { remaining: Duration::from_secs(5) };
    let (again, effects) = scene.released(&end, Ok(kept));
    assert!(!again && effects.withdraw.is_empty());
    scene.waits(second);
    let Some(Outgoing::Heartbeat(beat)) = effects.send else { panic!("it asks at once") };
    assert!(beat.waiter.id.number() > second, "under a fresh id");
}

#[test]
fn a_lock_whose_time_is_over_goes_on_in_memory() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    assert!(is_settled(&scene.end(10, Some(0), false)));
    assert_eq!(scene.takes(second), 11);
}

#[test]
fn the_runtime_repeats_the_release_of_a_holder_that_is_not_polled() {
    let mut scene = Scene::new();
    let first = scene.join();
    let _ = scene.granted(first, 10, 20, false);
    let (Some(end), _) = scene.end(10, Some(60_000), false) else { panic!() };
    scene.pass(3_000);
    let (_, effects) = scene.with(NameState::on_timer);
    assert_eq!(release_of(&effects).closed_until, end.closed_until);
}

#[test]
fn a_loss_takes_nothing_back_that_is_to_stay_closed() {
    for (closed_for, taken_back) in [(None, vec![1]), (Some(Duration::from_secs(60)), vec![])] {
        let mut scene = Scene::new();
        let first = scene.join();
        let taken = scene.granted(first, 10, 20, false);
        if let Phase::Turn(turn) = &mut scene.state.phase {
            turn.unanswered.on_send();
        }
        let closed_until = closed_for.map(|time| scene.now + time);
        let ((), effects) = scene.with(|state, env| {
            state.on_lost(env, TurnId::of(&taken.turn), LossReason::Shutdown, closed_until);
        });
        assert_eq!(withdrawn(&effects), taken_back);
    }
}

/// The holder was not polled, and the runtime's own copy was answered: that begins no turn, so the
/// holder's job asks the server itself.
#[test]
fn an_answer_to_another_copy_is_no_next_turn() {
    let refusal = StoreError::new(StoreErrorKind::Config, "no", "ask");
    let kept = ReleaseAnswer::Kept { remaining: Duration::from_secs(57) };
    for answer in [Ok(kept), Ok(ReleaseAnswer::Gone), Ok(ReleaseAnswer::Released), Err(refusal)] {
        let mut scene = Scene::new();
        let first = scene.join();
        let _ = scene.granted(first, 10, 20, false);
        let (Some(end), _) = scene.end(10, Some(60_000), false) else { panic!() };
        scene.pass(3_000);
        let effects = scene.with(NameState::on_timer).1;
        let copy = release_of(&effects);
        assert_eq!(scene.send(&copy), None);
        let _ = scene.released(&copy, answer);
        let (again, _) = scene.released(&end, Err(unheard()));
        assert!(again, "the holder has no answer yet");
        assert_eq!(scene.send(&end), None);
    }
}

#[test]
fn a_release_is_over_when_a_push_has_begun_the_next_turn() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 10, false);
    let effects = scene.release(10).1;
    let end = release_of(&effects);
    let next = scene.send(&end).expect("the second queues with it");
    let _ = scene.push(next, &grant(30, 40, 3000, false), 2);
    assert_eq!(scene.takes(second), 30);
    let (again, _) = scene.released(&end, Err(unheard()));
    assert!(!again);
    let (sent, _) = scene.with(|state, env| state.on_release_send(env, end.turn));
    assert!(sent.is_err(), "{sent:?}");
}
