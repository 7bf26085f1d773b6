use super::*;

#[test]
fn alone_a_turn_is_one_lease_and_its_end_is_the_holders() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let taken = scene.granted(lead, 10, 20, false);
    assert_eq!((taken.fence, taken.turn.id().number()), (fence(10), lead));
    let (after, effects) = scene.release(10);
    assert!(after.is_some());
    assert!(sends_nothing(&effects));
}

#[test]
fn a_turn_goes_from_task_to_task_in_order_with_a_token_each() {
    let mut scene = Scene::new();
    let [first, second, third] = [scene.join(), scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    scene.waits(second);
    assert!(is_settled(&scene.release(10)));
    scene.waits(third);
    assert_eq!(scene.takes(second), 11);
    assert!(is_settled(&scene.release(11)));
    assert_eq!(scene.takes(third), 12);
    let (after, effects) = scene.release(10);
    assert!(after.is_none() && effects.settled.is_none(), "the first lease is long over");
}

#[test]
fn while_others_wait_only_those_are_served_who_waited_when_the_turn_began() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 25, true);
    let late = scene.join();
    let _ = scene.release(10);
    assert_eq!(scene.takes(second), 11);
    let (_, effects) = scene.release(11);
    let next = scene.send(&release_of(&effects)).expect("the late one queues anew");
    assert!(next > late, "under a fresh id");
    scene.waits(late);
}

#[test]
fn a_turn_ends_when_its_tokens_or_its_time_are_used_up() {
    for (last, millis) in [(10, 0), (2000, 11)] {
        let mut scene = Scene::new();
        let [first, second] = [scene.join(), scene.join()];
        scene.granted(first, 10, last, false);
        scene.pass(millis);
        let (_, effects) = scene.release(10);
        assert!(scene.send(&release_of(&effects)).is_some());
        scene.waits(second);
    }
}

#[test]
fn an_offer_that_is_cancelled_goes_to_the_next_task_and_its_token_is_spent() {
    let mut scene = Scene::new();
    let [first, second, third] = [scene.join(), scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    let _ = scene.release(10);
    let _ = scene.with(|state, env| state.leave(env, second));
    assert_eq!(scene.takes(third), 12);
}

#[test]
fn an_offer_that_is_not_taken_ends_the_turn_and_dismisses_the_task() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    let _ = scene.release(10);
    scene.pass(1500);
    let (_, effects) = scene.with(NameState::on_timer);
    assert!(scene.send(&release_of(&effects)).is_none());
    assert!(matches!(scene.poll(second), Poll::Ready(Err(NoLease::Dismissed))));
}
