//! The rule: newer fences, and equal ones of the same lease.

use leasehold_core::Fence;
use tokio::task::JoinSet;

use crate::gates::{Outcome, Scene, stamp};

/// What is newer writes, the same lease writes again, everything else is refused and changes
/// nothing.
pub(crate) async fn only_a_newer_fence_or_the_same_lease_writes(scene: &Scene) {
    let name = Scene::NAME;
    assert_eq!(scene.write(name, stamp(42, 2)).await, Outcome::Accepted);
    assert_eq!(scene.write(name, stamp(42, 2)).await, Outcome::Accepted);
    for late in [stamp(41, 1), stamp(41, 2), stamp(42, 1), stamp(42, 3), stamp(1, 9)] {
        assert!(scene.write(name, late).await.is_stale(), "{late}");
        assert!(scene.advance(name, late).await.is_stale(), "{late}");
    }
    scene.assert_holds(name, Some(stamp(42, 2))).await;
    assert_eq!(scene.write(name, stamp(43, 3)).await, Outcome::Accepted);
    scene.assert_holds(name, Some(stamp(43, 3))).await;
}

/// The control: without the gate a late write stands.
pub(crate) async fn control_without_the_gate_a_late_write_stands(scene: &Scene) {
    assert_eq!(scene.write_past(Scene::NAME, stamp(42, 2)).await, Outcome::Accepted);
    assert_eq!(scene.write_past(Scene::NAME, stamp(41, 1)).await, Outcome::Accepted);
    scene.assert_holds(Scene::NAME, Some(stamp(41, 1))).await;
}

/// One digit more is newer, up to the greatest fence.
pub(crate) async fn fences_are_compared_as_numbers(scene: &Scene) {
    let fences = [9, 10, 99, 100, (1 << 32) - 1, 1 << 32, Fence::MAX - 1, Fence::MAX];
    for pair in fences.windows(2) {
        let [older, newer] = [stamp(pair[0], pair[0]), stamp(pair[1], pair[1])];
        assert_eq!(scene.write(Scene::NAME, newer).await, Outcome::Accepted, "{newer}");
        assert!(scene.write(Scene::NAME, older).await.is_stale(), "{older} after {newer}");
        scene.assert_holds(Scene::NAME, Some(newer)).await;
    }
}

/// A lease that was taken shuts out the holder before, before its first write.
pub(crate) async fn an_advance_shuts_out_and_changes_nothing_else(scene: &Scene) {
    let name = Scene::NAME;
    assert_eq!(scene.write(name, stamp(41, 1)).await, Outcome::Accepted);
    for _ in ["once", "twice"] {
        assert_eq!(scene.advance(name, stamp(42, 2)).await, Outcome::Accepted);
        scene.assert_holds(name, Some(stamp(41, 1))).await;
    }
    assert!(scene.write(name, stamp(41, 1)).await.is_stale());
    scene.assert_holds(name, Some(stamp(41, 1))).await;
    assert_eq!(scene.write(name, stamp(42, 2)).await, Outcome::Accepted);
    scene.assert_holds(name, Some(stamp(42, 2))).await;
}

/// So does one where nothing was ever written.
pub(crate) async fn an_advance_shuts_out_where_nothing_is(scene: &Scene) {
    assert_eq!(scene.advance(Scene::NAME, stamp(42, 2)).await, Outcome::Accepted);
    assert!(scene.write(Scene::NAME, stamp(41, 1)).await.is_stale());
    scene.assert_holds(Scene::NAME, None).await;
    assert_eq!(scene.write(Scene::NAME, stamp(42, 2)).await, Outcome::Accepted);
    scene.assert_holds(Scene::NAME, Some(stamp(42, 2))).await;
}

/// Repeats of a write are taken, and after a newer one refused.
pub(crate) async fn a_repeat_undoes_nothing_newer(scene: &Scene) {
    for _ in 0..3 {
        assert_eq!(scene.write(Scene::NAME, stamp(41, 1)).await, Outcome::Accepted);
    }
    assert_eq!(scene.write(Scene::NAME, stamp(42, 2)).await, Outcome::Accepted);
    for _ in 0..3 {
        assert!(scene.write(Scene::NAME, stamp(41, 1)).await.is_stale());
    }
    scene.assert_holds(Scene::NAME, Some(stamp(42, 2))).await;
}

/// In whatever order the writes of leases arrive, the newest that has arrived stands.
pub(crate) async fn writes_in_any_order_leave_the_newest(scene: &Scene) {
    for (number, order) in orders(&[1, 2, 3, 4]).into_iter().enumerate() {
        let name = format!("order/{number}");
        let mut newest = 0;
        for fence in order {
            let outcome = scene.write(&name, stamp(fence, fence)).await;
            assert_eq!(outcome == Outcome::Accepted, fence > newest, "{fence} after {newest}");
            newest = newest.max(fence);
            scene.assert_holds(&name, Some(stamp(newest, newest))).await;
        }
    }
}

/// Every order of some numbers.
fn orders(of: &[u64]) -> Vec<Vec<u64>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: &u64| {
        let rest: Vec<u64> = of.iter().copied().filter(|other| other != first).collect();
        orders(&rest).into_iter().map(|rest| [vec![*first], rest].concat()).collect::<Vec<_>>()
    };
    of.iter().flat_map(with_first).collect()
}

/// Of writes at the same time the newest stands, and only older ones are refused.
pub(crate) async fn racing_writers_leave_the_newest(scene: &Scene) {
    const WRITERS: u64 = 8;
    let mut writers = JoinSet::new();
    for fence in 1..=WRITERS {
        let scene = scene.clone();
        writers.spawn(async move { (fence, scene.write(Scene::NAME, stamp(fence, fence)).await) });
    }
    for (fence, outcome) in writers.join_all().await {
        let is_right = outcome == Outcome::Accepted || fence < WRITERS && outcome.is_stale();
        assert!(is_right, "{fence}: {outcome:?}");
    }
    scene.assert_holds(Scene::NAME, Some(stamp(WRITERS, WRITERS))).await;
}

/// Of leases with one fence, one writes.
pub(crate) async fn of_leases_with_one_fence_one_writes(scene: &Scene) {
    let mut writers = JoinSet::new();
    for lease in 1..=4 {
        let scene = scene.clone();
        writers.spawn(async move { scene.write(Scene::NAME, stamp(7, lease)).await });
    }
    let outcomes = writers.join_all().await;
    let accepted = outcomes.iter().filter(|outcome| **outcome == Outcome::Accepted).count();
    let stale = outcomes.iter().filter(|outcome| outcome.is_stale()).count();
    assert_eq!((accepted, stale), (1, 3), "{outcomes:?}");
}

/// A refusal tells the stamp that stands in the way, where the gate tells it at all.
pub(crate) async fn a_refusal_tells_what_stands_in_the_way(scene: &Scene) {
    assert_eq!(scene.write(Scene::NAME, stamp(42, 2)).await, Outcome::Accepted);
    let refused = scene.write(Scene::NAME, stamp(41, 1)).await;
    let told = [Outcome::Stale(None), Outcome::Stale(Some(stamp(42, 2)))];
    assert!(told.contains(&refused), "{refused:?}");
}
