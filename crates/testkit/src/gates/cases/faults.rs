//! What a network or a crash does to a write: its answer is lost, it hangs, it arrives late.

use crate::gates::{Outcome, Scene, stamp};

/// A lost answer is never taken for a refusal; a repeat tells, and after a newer write undoes
/// nothing.
pub(crate) async fn a_write_whose_answer_is_lost_may_be_repeated(scene: &Scene) {
    let name = Scene::NAME;
    assert_eq!(scene.write(name, stamp(40, 1)).await, Outcome::Accepted);
    scene.faults().lose_answer(stamp(41, 2), true);
    let lost = scene.write(name, stamp(41, 2)).await;
    assert_lost(scene, lost);
    scene.assert_holds(name, Some(stamp(41, 2))).await;
    assert!(scene.write(name, stamp(40, 1)).await.is_stale());
    assert_eq!(scene.write(name, stamp(41, 2)).await, Outcome::Accepted);

    scene.faults().lose_answer(stamp(42, 3), true);
    let lost = scene.write(name, stamp(42, 3)).await;
    assert_lost(scene, lost);
    assert_eq!(scene.write(name, stamp(43, 4)).await, Outcome::Accepted);
    assert!(scene.write(name, stamp(42, 3)).await.is_stale());
    scene.assert_holds(name, Some(stamp(43, 4))).await;
}

/// Expects that an answer was lost, and what its writer was told.
fn assert_lost(scene: &Scene, told: Outcome) {
    assert!(scene.faults().has_struck(), "no answer was lost: {told:?}");
    // A client that repeats by itself hears the second answer.
    let repeats = scene.faults().repeats();
    let expected = if repeats { Outcome::Accepted } else { Outcome::Unknown };
    assert_eq!(told, expected);
}

/// The control: without the gate the repeat overwrites what is newer.
pub(crate) async fn control_without_the_gate_a_repeat_overwrites_what_is_newer(scene: &Scene) {
    let name = Scene::NAME;
    scene.write_past(name, stamp(40, 1)).await;
    scene.faults().lose_answer(stamp(41, 2), false);
    let lost = scene.write_past(name, stamp(41, 2)).await;
    assert_lost(scene, lost);
    assert_eq!(scene.write_past(name, stamp(42, 3)).await, Outcome::Accepted);
    assert_eq!(scene.write_past(name, stamp(41, 2)).await, Outcome::Accepted);
    scene.assert_holds(name, Some(stamp(41, 2))).await;
}

/// A write that the network keeps until a newer one has landed is refused when it arrives.
pub(crate) async fn a_write_that_arrives_late_is_refused(scene: &Scene) {
    let name = Scene::NAME;
    assert_eq!(scene.write(name, stamp(40, 1)).await, Outcome::Accepted);
    scene.faults().hold(stamp(41, 2));
    let late = tokio::spawn({
        let scene = scene.clone();
        async move { scene.write(name, stamp(41, 2)).await }
    });
    scene.faults().held().await;
    assert_eq!(scene.write(name, stamp(42, 3)).await, Outcome::Accepted);
    scene.faults().deliver().await;
    let late = late.await.expect("the writer ends");
    assert!(late.is_stale() || matches!(late, Outcome::Unknown | Outcome::Failed), "{late:?}");
    scene.assert_holds(name, Some(stamp(42, 3))).await;
    assert!(scene.write(name, stamp(41, 2)).await.is_stale());
}

/// The control: without the gate it lands.
pub(crate) async fn control_without_the_gate_a_write_that_arrives_late_lands(scene: &Scene) {
    let name = Scene::NAME;
    scene.write_past(name, stamp(40, 1)).await;
    scene.faults().hold(stamp(41, 2));
    let late = tokio::spawn({
        let scene = scene.clone();
        async move { scene.write_past(name, stamp(41, 2)).await }
    });
    scene.faults().held().await;
    assert_eq!(scene.write_past(name, stamp(42, 3)).await, Outcome::Accepted);
    scene.faults().deliver().await;
    late.await.expect("the writer ends");
    scene.assert_holds(name, Some(stamp(41, 2))).await;
}

/// A writer that gives up on a storage which hangs leaves nothing that undoes a newer write.
pub(crate) async fn a_write_that_was_given_up_undoes_nothing_newer(scene: &Scene) {
    let name = Scene::NAME;
    assert_eq!(scene.write(name, stamp(40, 1)).await, Outcome::Accepted);
    scene.faults().hold(stamp(41, 2));
    let hanging = tokio::spawn({
        let scene = scene.clone();
        async move { scene.write(name, stamp(41, 2)).await }
    });
    scene.faults().held().await;
    hanging.abort();
    let _ = hanging.await;
    assert_eq!(scene.write(name, stamp(42, 3)).await, Outcome::Accepted);
    scene.faults().deliver().await;
    scene.assert_holds(name, Some(stamp(42, 3))).await;
    assert!(scene.write(name, stamp(41, 2)).await.is_stale());
    assert_eq!(scene.write(name, stamp(43, 4)).await, Outcome::Accepted);
}

/// A write that hangs holds up its own resource at most.
pub(crate) async fn a_write_that_hangs_holds_up_no_other_resource(scene: &Scene) {
    assert_eq!(scene.write(Scene::NAME, stamp(40, 1)).await, Outcome::Accepted);
    scene.faults().hold(stamp(41, 2));
    let hanging = tokio::spawn({
        let scene = scene.clone();
        async move { scene.write(Scene::NAME, stamp(41, 2)).await }
    });
    scene.faults().held().await;
    for number in 8..16 {
        let name = format!("stock/{number}");
        assert_eq!(scene.write(&name, stamp(42, number)).await, Outcome::Accepted);
        scene.assert_holds(&name, Some(stamp(42, number))).await;
    }
    scene.faults().deliver().await;
    let ended = hanging.await.expect("the writer ends");
    assert!(!ended.is_stale() && ended != Outcome::NoSuchName, "{ended:?}");
    // Whatever the writer was told: it is repeated, and stands.
    assert_eq!(scene.write(Scene::NAME, stamp(41, 2)).await, Outcome::Accepted);
    scene.assert_holds(Scene::NAME, Some(stamp(41, 2))).await;
}

/// Wherever a writer is cut off: a value that the storage has is guarded by its stamp.
pub(crate) async fn a_writer_that_crashes_leaves_no_value_without_its_watermark(scene: &Scene) {
    let points = scene.faults().crash_points();
    let (mut cut, mut cut_before_the_write) = (0, 0);
    for point in 0..points {
        let name = format!("crash/{point}");
        assert_eq!(scene.write(&name, stamp(40, 1)).await, Outcome::Accepted);
        scene.faults().crash_at(point);
        scene.write(&name, stamp(42, 3)).await;
        let was_cut = scene.faults().has_struck();
        scene.faults().calm();
        cut += u64::from(was_cut);
        let held = scene.subject().read(&name).await;
        if held == Some(stamp(42, 3).to_string()) {
            assert!(scene.write(&name, stamp(41, 2)).await.is_stale(), "after point {point}");
        } else {
            assert!(was_cut, "after point {point}");
            scene.assert_holds(&name, Some(stamp(40, 1))).await;
            cut_before_the_write += 1;
        }
        assert_eq!(scene.write(&name, stamp(42, 3)).await, Outcome::Accepted);
        assert!(scene.write(&name, stamp(41, 2)).await.is_stale(), "after point {point}");
        scene.assert_holds(&name, Some(stamp(42, 3))).await;
    }
    println!("  {points} points: {cut} cut, {cut_before_the_write} before the write took effect");
    if points == 0 {
        return;
    }
    assert!(0 < cut && cut < points, "the points reach from the first piece to behind the last");
    // A client that repeats by itself writes in the end.
    let is_cut_off = cut_before_the_write > 0;
    assert_eq!(is_cut_off, !scene.faults().repeats(), "{cut_before_the_write} were cut off");
}

/// The control: a writer that writes first, and moves the watermark in a second step.
pub(crate) async fn control_a_value_and_a_watermark_in_two_steps_come_apart(scene: &Scene) {
    assert_eq!(scene.write(Scene::NAME, stamp(40, 1)).await, Outcome::Accepted);
    assert_eq!(scene.write_past(Scene::NAME, stamp(42, 3)).await, Outcome::Accepted);
    // Here it crashes: the watermark is that of 40.
    assert_eq!(scene.write(Scene::NAME, stamp(41, 2)).await, Outcome::Accepted);
    scene.assert_holds(Scene::NAME, Some(stamp(41, 2))).await;
}
