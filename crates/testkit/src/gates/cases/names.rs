//! Names: one thing of the storage is one resource of the gate, however it is spelled.

use std::collections::BTreeMap;

use leasehold_core::Stamp;

use crate::gates::{Outcome, Scene, hostile_names, stamp};

/// A name is taken, or refused as a name: never as a failure, and never as stale.
pub(crate) async fn a_name_is_taken_or_refused_as_one(scene: &Scene) {
    for name in hostile_names() {
        let presented = stamp(42, 2);
        let ends = [scene.advance(&name, presented).await, scene.write(&name, presented).await];
        let known = |end: &Outcome| {
            // Another spelling of a thing that was written under this stamp may come before.
            matches!(end, Outcome::Accepted | Outcome::NoSuchName)
        };
        assert!(ends.iter().all(known), "{name:?}: {ends:?}");
        let accepted = ends.iter().all(|end| *end == Outcome::Accepted);
        assert_eq!(accepted, scene.subject().accepts(&name), "{name:?}: {ends:?}");
        if accepted {
            scene.assert_holds(&name, Some(presented)).await;
        }
    }
}

/// Who advances by a name shuts out who writes by it.
pub(crate) async fn an_advance_reaches_what_is_written_by_that_name(scene: &Scene) {
    let mut fence = 100;
    for name in hostile_names() {
        fence += 10;
        let [before, late, newer] = [0, 1, 2].map(|more| stamp(fence + more, fence + more));
        if scene.write(&name, before).await == Outcome::NoSuchName {
            continue;
        }
        match scene.advance(&name, newer).await {
            Outcome::Accepted => {
                assert!(scene.write(&name, late).await.is_stale(), "{name:?}");
                scene.assert_holds(&name, Some(before)).await;
            }
            refused => assert_eq!(refused, Outcome::NoSuchName, "{name:?}"),
        }
    }
}

/// Different things do not touch each other; one thing is guarded under each of its spellings.
pub(crate) async fn one_thing_is_one_resource(scene: &Scene) {
    written_once_each(scene, hostile_names()).await;
}

/// The same, in the other order: what came second may have touched what came first.
pub(crate) async fn one_thing_is_one_resource_in_the_other_order(scene: &Scene) {
    written_once_each(scene, hostile_names().into_iter().rev().collect()).await;
}

/// Writes each name under a lease of its own, all with one fence, and then late.
async fn written_once_each(scene: &Scene, names: Vec<String>) {
    let mut written = BTreeMap::<String, Stamp>::new();
    for (lease, name) in (1..).zip(names) {
        let presented = stamp(1_000, lease);
        match scene.write(&name, presented).await {
            Outcome::Accepted => {
                written.insert(name, presented);
            }
            Outcome::NoSuchName => {}
            // Another spelling: what the storage holds under it has to be what stands in the way.
            Outcome::Stale(_) => {
                let held = scene.subject().read(&name).await;
                let other = written.values().find(|stamp| held == Some(stamp.to_string()));
                let other = *other.unwrap_or_else(|| panic!("{name:?} is not what refuses it"));
                written.insert(name, other);
            }
            failed => panic!("{name:?}: {failed:?}"),
        }
    }
    for (name, stamp) in &written {
        scene.assert_holds(name, Some(*stamp)).await;
    }
    for (number, name) in (1_000..).zip(written.keys()) {
        assert!(scene.write(name, stamp(999, number)).await.is_stale(), "{name:?}");
    }
    for (name, stamp) in &written {
        scene.assert_holds(name, Some(*stamp)).await;
    }
    assert!(written.len() > 20, "only {} names are taken", written.len());
}
