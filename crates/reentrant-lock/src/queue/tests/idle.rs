use super::*;

/// A scene whose turns are kept for so many milliseconds, where a first lease has token 10.
fn kept(millis: u64, last: u64) -> (Scene, TurnId) {
    let mut scene = Scene::new();
    scene.keep = Some(Keep { idle: Duration::from_millis(millis), is_worth_it: true });
    let (lead, command) = scene.join_as(false);
    assert!(command.is_some_and(|lead| lead.keeps));
    let taken = scene.granted(lead, 10, last, false);
    (scene, TurnId::of(&taken.turn))
}

/// The token that a task takes of an idle turn.
fn reuses(scene: &mut Scene) -> u64 {
    match scene.come(false, Terms::default()) {
        (Ok(Joined::Taken(taken)), effects) => {
            assert_eq!(effects.kept, Some(KeptOutcome::Reused));
            assert!(sends_nothing(&effects) && taken.number != taken.turn.id().number());
            taken.fence.get()
        }
        (other, _) => panic!("the turn is idle, and yet {other:?}"),
    }
}

fn idles(scene: &mut Scene, token: u64) {
    let released = scene.release(token);
    assert!(is_settled(&released) && sends_nothing(&released.1));
    assert!(scene.state.is_idle());
}

fn wanted(scene: &mut Scene, turn: TurnId) -> Effects {
    scene.with(|state, env| state.on_wanted(env, turn)).1
}

fn ends_as(effects: &Effects, outcome: KeptOutcome) {
    assert_eq!(effects.kept, Some(outcome));
    let _ = release_of(effects);
}

#[test]
fn an_idle_turn_is_taken_with_the_next_token() {
    let (mut scene, _) = kept(1_000, 20);
    for token in 10..15 {
        idles(&mut scene, token);
        scene.pass(999);
        assert_eq!(reuses(&mut scene), token + 1);
    }
}

#[test]
fn an_idle_turn_ends_when_its_time_is_over() {
    let (mut scene, _) = kept(1_000, 20);
    idles(&mut scene, 10);
    scene.pass(999);
    let (_, effects) = scene.with(NameState::on_timer);
    assert!(sends_nothing(&effects));
    scene.pass(1);
    let (_, effects) = scene.with(NameState::on_timer);
    ends_as(&effects, KeptOutcome::Lapsed);
}

#[test]
fn an_idle_turn_ends_while_enough_belief_is_left_to_enter() {
    // A scene's leases are believed for 20 s from their release on.
    let (mut scene, _) = kept(25_000, 20);
    idles(&mut scene, 10);
    scene.pass(19_499);
    assert!(sends_nothing(&scene.with(NameState::on_timer).1));
    scene.pass(1);
    ends_as(&scene.with(NameState::on_timer).1, KeptOutcome::Lapsed);
}

#[test]
fn a_task_that_comes_late_does_not_take_an_idle_turn_that_no_timer_has_ended() {
    let (mut scene, turn) = kept(1_000, 20);
    idles(&mut scene, 10);
    scene.pass(1_000);
    let (joined, effects) = scene.come(false, Terms::default());
    assert!(matches!(joined, Ok(Joined::InLine(_, None))));
    ends_as(&effects, KeptOutcome::Lapsed);
    let release = release_of(&effects);
    assert_eq!(release.turn, turn);
    assert!(scene.send(&release).is_some(), "the task queues with it");
}

#[test]
fn a_block_that_is_used_up_is_followed_by_the_next_in_one_command() {
    let (mut scene, _) = kept(1_000, 11);
    idles(&mut scene, 10);
    assert_eq!(reuses(&mut scene), 11);
    idles(&mut scene, 11);
    let (joined, effects) = scene.come(false, Terms::default());
    let Ok(Joined::InLine(ticket, None)) = joined else { panic!("{joined:?}") };
    let release = release_of(&effects);
    assert!(scene.send(&release).is_some());
    let granted = ReleaseAnswer::NextGranted(grant(2000, 3000, 3_000, false));
    let _ = scene.released(&release, Ok(granted));
    assert_eq!(scene.takes(ticket), 2000);
    idles(&mut scene, 2000);
    assert_eq!(reuses(&mut scene), 2001);
}

#[test]
fn a_lease_of_another_ttl_does_not_take_an_idle_turn() {
    let (mut scene, _) = kept(1_000, 20);
    idles(&mut scene, 10);
    let (joined, effects) =
        scene.come(false, Terms::without_acks(Ttl::new(Duration::from_secs(5)).unwrap()));
    assert!(matches!(joined, Ok(Joined::InLine(_, None))));
    ends_as(&effects, KeptOutcome::Lapsed);
}

#[test]
fn a_try_takes_an_idle_turn_and_waits_for_the_end_of_one_that_does_not_serve_it() {
    let (mut scene, _) = kept(1_000, 11);
    idles(&mut scene, 10);
    assert!(matches!(scene.come(true, Terms::default()).0, Ok(Joined::Taken(..))));
    idles(&mut scene, 11);
    let (joined, effects) = scene.come(true, Terms::default());
    assert!(matches!(joined, Err(NoLease::Releasing)), "{joined:?}");
    let release = release_of(&effects);
    assert_eq!(scene.send(&release), None, "nobody waits");
}

#[test]
fn who_wants_an_idle_turn_gets_it() {
    let (mut scene, turn) = kept(1_000, 20);
    idles(&mut scene, 10);
    let effects = wanted(&mut scene, turn);
    ends_as(&effects, KeptOutcome::Recalled);
    assert!(effects.ended.is_some_and(|ended| ended.was_wanted));
}

#[test]
fn a_recall_that_crosses_a_take_ends_the_turn_after_that_lease() {
    let (mut scene, turn) = kept(1_000, 20);
    idles(&mut scene, 10);
    assert_eq!(reuses(&mut scene), 11);
    let effects = wanted(&mut scene, turn);
    assert!(sends_nothing(&effects) && effects.kept.is_none());
    let (after, effects) = scene.release(11);
    assert!(after.is_some());
    assert!(effects.ended.is_some_and(|ended| ended.was_wanted));
}

#[test]
fn a_held_turn_that_is_wanted_serves_those_who_wait_by_then() {
    let (mut scene, turn) = kept(1_000, 20);
    let early = scene.join();
    assert!(sends_nothing(&wanted(&mut scene, turn)));
    let late = scene.join();
    let _ = scene.release(10);
    assert_eq!(scene.takes(early), 11);
    let (_, effects) = scene.release(11);
    assert!(scene.send(&release_of(&effects)).is_some(), "the late one queues anew");
    scene.waits(late);
}

#[test]
fn a_recall_of_an_older_turn_changes_nothing() {
    let (mut scene, TurnId { id, .. }) = kept(1_000, 20);
    idles(&mut scene, 10);
    let effects = wanted(&mut scene, TurnId { id, first: fence(9) });
    assert!(sends_nothing(&effects));
    assert_eq!(reuses(&mut scene), 11);
}

#[test]
fn a_recall_counts_that_comes_before_the_grant() {
    let mut scene = Scene::new();
    scene.keep = Some(Keep { idle: Duration::from_secs(1), is_worth_it: true });
    let lead = scene.join();
    let turn = TurnId { id: scene.numbers.acquisition_id(&scene.name, lead), first: fence(10) };
    assert!(sends_nothing(&wanted(&mut scene, turn)));
    let _ = scene.granted(lead, 10, 20, false);
    assert!(scene.release(10).0.is_some());
}

#[test]
fn a_turn_is_not_kept_that_others_wait_for_or_that_is_not_worth_it() {
    for (contended, is_worth_it) in [(true, true), (false, false)] {
        let mut scene = Scene::new();
        scene.keep = Some(Keep { idle: Duration::from_secs(1), is_worth_it });
        let (lead, command) = scene.join_as(false);
        assert_eq!(command.map(|lead| lead.keeps), Some(is_worth_it));
        let _ = scene.granted(lead, 10, 20, contended);
        assert!(scene.release(10).0.is_some());
    }
}

#[test]
fn a_lock_that_stays_closed_is_not_kept() {
    let (mut scene, _) = kept(1_000, 20);
    assert!(scene.end(10, Some(500), false).0.is_some());
}

#[test]
fn a_kept_turn_goes_on_for_a_ttl_while_nobody_wants_it() {
    let (mut scene, _) = kept(1_000, 20);
    scene.pass(29_500);
    let next = scene.join();
    let _ = scene.release(10);
    assert_eq!(scene.takes(next), 11);
    idles(&mut scene, 11);
    scene.pass(499);
    assert_eq!(reuses(&mut scene), 12);
    scene.pass(1);
    assert!(scene.release(12).0.is_some());
}

/// A scene's leases are believed for 20 s from their release on.
#[test]
fn a_task_that_waits_is_not_offered_what_is_left_of_an_old_turn() {
    for (less, is_offered) in [(501, true), (500, false)] {
        let (mut scene, _) = kept(1_000, 20);
        let next = scene.join();
        let until = scene.now + Duration::from_millis(less);
        let _ = scene
            .with(|state, env| state.on_release(env, fence(10), until, None, ReleaseVia::Explicit));
        assert_eq!(scene.poll(next).is_ready(), is_offered, "{less} ms are left");
    }
}

#[test]
fn what_is_released_after_the_runtime_closed_is_not_kept() {
    let (mut scene, _) = kept(1_000, 20);
    assert!(sends_nothing(&scene.with(NameState::on_close).1), "its holder goes on");
    assert!(scene.release(10).0.is_some());
}

#[test]
fn a_runtime_that_closes_or_keeps_too_much_ends_its_idle_turns() {
    let ends: [fn(&mut NameState, &mut Env<'_>); 2] =
        [NameState::on_close, |state, env| state.end_idle(env, KeptOutcome::Lapsed)];
    for end in ends {
        let (mut scene, _) = kept(1_000, 20);
        idles(&mut scene, 10);
        ends_as(&scene.with(end).1, KeptOutcome::Lapsed);
    }
}

#[test]
fn an_idle_turn_that_an_operator_ended_is_gone() {
    let (mut scene, turn) = kept(1_000, 20);
    idles(&mut scene, 10);
    let ((), effects) = scene.with(|state, env| state.on_force_released(env, turn));
    assert!(sends_nothing(&effects));
    assert!(matches!(scene.come(false, Terms::default()).0, Ok(Joined::InLine(_, Some(_)))));
}
