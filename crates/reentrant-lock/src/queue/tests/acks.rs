use super::*;

fn one_replica() -> Replication {
    let timeout = Duration::from_millis(100);
    Replication::wait(1, timeout).unwrap()
}

/// A scene whose tasks need one replica.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.terms.acks = one_replica();
    scene
}

fn too_few() -> StoreError {
    StoreError::unacknowledged(one_replica(), "none")
}

/// A push waits for no replica; the control begins with it.
#[test]
fn a_pushed_grant_is_confirmed_before_a_task_enters() {
    for confirms in [true, false] {
        let mut scene = scene();
        if !confirms {
            scene.rules.needs_acks = |_| false;
        }
        let lead = scene.join();
        scene.queued(lead);
        let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
        if !confirms {
            assert_eq!(scene.takes(lead), 10, "the control takes it");
            continue;
        }
        let Some(Outgoing::Confirm(pushed)) = effects.send else { panic!("{:?}", effects.send) };
        assert_eq!(pushed.terms().acks, one_replica());
        scene.waits(lead);
        let remaining = Duration::from_secs(30);
        let answer =
            TimedAnswer { sent_at: scene.now, result: Ok(RenewAnswer::Renewed { remaining }) };
        let _ = scene.with(|state, env| state.on_confirmation(env, *pushed, answer));
        assert_eq!(scene.takes(lead), 10);
    }
}

/// The first command has waited for the replicas itself.
#[test]
fn the_answer_to_a_first_command_is_not_confirmed_again() {
    let mut scene = scene();
    let lead = scene.join();
    assert_eq!(scene.granted(lead, 10, 20, false).turn.terms().acks, one_replica());
}

#[test]
fn a_grant_that_too_few_have_is_taken_back_and_asked_for_anew() {
    let mut scene = scene();
    let lead = scene.join();
    let mut id = scene.numbers.acquisition_id(&scene.name, lead);
    for round in 0..5 {
        let answer = TimedAnswer { sent_at: scene.now, result: Err(too_few()) };
        let ((), effects) = scene.with(|state, env| match round {
            0 => drop(state.on_first_reply(env, lead, false, answer)),
            _ => state.on_reply(env, id, answer),
        });
        assert_eq!(withdrawn(&effects), [id.number()], "round {round}");
        let failing = scene.state.failing(scene.now).expect("it fails");
        assert_eq!(failing.failed, round + 1);
        assert!(failing.error.is_unacknowledged());
        scene.now = scene.with(|state, env| state.look_at(env)).0.expect("it asks again");
        let fresh = scene.with(NameState::on_timer).0.expect("it asks").waiter.id;
        assert_ne!(fresh, id, "a withdrawn id is dead");
        id = fresh;
    }
}

/// Another runtime has the lock for the moment in which its own grant waits for the replicas.
#[test]
fn a_grant_that_too_few_had_is_remembered_while_others_have_the_lock() {
    let mut scene = scene();
    let lead = scene.join();
    let began = scene.now;
    let answer = TimedAnswer { sent_at: scene.now, result: Err(too_few()) };
    scene.with(|state, env| drop(state.on_first_reply(env, lead, false, answer)));
    scene.now = scene.with(|state, env| state.look_at(env)).0.expect("it asks again");
    let fresh = scene.with(NameState::on_timer).0.expect("it asks").waiter.id;
    scene.queued(fresh.number());
    assert!(scene.state.failing(scene.now).is_none(), "the lock is taken");
    let why = scene.state.too_few(began).expect("its own grant was taken back");
    assert!(why.error.is_unacknowledged());
    // A call that begins later has met nothing of it.
    assert!(scene.state.too_few(scene.now).is_none());
}

#[test]
fn a_confirmation_that_too_few_have_takes_the_grant_back() {
    let mut scene = scene();
    let lead = scene.join();
    scene.queued(lead);
    let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
    let Some(Outgoing::Confirm(pushed)) = effects.send else { panic!("{:?}", effects.send) };
    let answer = TimedAnswer { sent_at: scene.now, result: Err(too_few()) };
    let ((), effects) = scene.with(|state, env| state.on_confirmation(env, *pushed, answer));
    assert_eq!(withdrawn(&effects), [lead]);
    scene.waits(lead);
}

#[test]
fn a_try_that_too_few_have_fails_at_once_and_leaves_nothing() {
    let mut scene = scene();
    let (lead, _) = scene.join_as(true);
    let answer = TimedAnswer { sent_at: scene.now, result: Err(too_few()) };
    let (asked, effects) = scene.with(|state, env| state.on_first_reply(env, lead, true, answer));
    assert!(matches!(asked, Poll::Ready(Err(NoLease::Failed(_)))), "{asked:?}");
    assert_eq!(withdrawn(&effects), [lead]);
    assert!(scene.state.is_done());
}

#[test]
fn a_turn_is_not_passed_to_a_task_that_needs_other_acknowledgements() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.granted(lead, 10, 20, false);
    scene.terms.acks = one_replica();
    let waiting = scene.join();
    let (_, effects) = scene.release(10);
    let release = release_of(&effects);
    let next = scene.send(&release).expect("it queues anew");
    scene.waits(waiting);
    let granted = ReleaseAnswer::NextGranted(grant(30, 40, 3000, false));
    let (_, effects) = scene.released(&release, Ok(granted));
    let Some(Outgoing::Confirm(granted)) = effects.send else { panic!("{:?}", effects.send) };
    assert_eq!((granted.id().number(), granted.terms().acks), (next, one_replica()));
}

/// Its renewals were extended on the master, where replicas had none of them. The control is one
/// that needs no replica: its server has it no longer than its holder believes, and a ttl at most.
#[test]
fn a_lease_that_no_replica_has_is_released_when_it_ends() {
    for needs_replicas in [true, false] {
        let mut scene = if needs_replicas { scene() } else { Scene::new() };
        let lead = scene.join();
        let taken = scene.granted(lead, 10, 10, false);
        let turn = TurnId::of(&taken.turn);
        let ((), effects) =
            scene.with(|state, env| state.on_lost(env, turn, LossReason::Expired, None));
        let releases = effects.release.is_some_and(|release| release.turn == turn);
        assert_eq!(releases, needs_replicas);
    }
}
