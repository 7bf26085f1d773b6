//! Scans: which locks there are, in steps.

use std::collections::BTreeSet;

use leasehold_core::{
    LockName, NamePattern,
    store::{AcquireAnswer, Inspection, ScanCursor},
};

use crate::contract::{Calls, Scene, alice, bob, ttl};

/// All names that a scan finds.
async fn scanned(calls: &Calls, pattern: &str) -> BTreeSet<LockName> {
    let pattern = &NamePattern::new(pattern).expect("a pattern");
    let (mut names, mut next) = (BTreeSet::new(), Some(ScanCursor::default()));
    while let Some(cursor) = next {
        let page = calls.scan(pattern, &cursor).await.expect("scan");
        assert_eq!(page.failed, None);
        names.extend(page.names);
        next = page.next;
    }
    names
}

fn named(name: &str) -> LockName {
    LockName::new(name).expect("a name")
}

/// Takes a lock of this name.
async fn take(scene: &Scene, name: &str) {
    let taken = scene.calls().about(name).acquire(alice(1), ttl(60), None).await;
    assert!(matches!(taken, Ok(AcquireAnswer::Granted(_))), "{name}: {taken:?}");
}

/// A scan names every lock that is held, and none of which nobody has ever heard.
pub(crate) async fn a_scan_names_what_is_held(scene: &Scene) {
    assert!(scanned(&scene.calls(), "*").await.is_empty());
    let fence = scene.granted(alice(1)).await.first;
    let all = scanned(&scene.calls(), "*").await;
    assert!(all.iter().eq([scene.name()]));
    scene.queued(bob(1)).await;
    assert_eq!(scanned(&scene.calls(), "*").await, all, "its queue is no lock");
    scene.force_release(alice(1), fence).await;
}

/// A scan names those locks that match, whatever characters their names have.
pub(crate) async fn a_scan_names_what_matches(scene: &Scene) {
    let names = ["a", "ab", "a*b", "a[b]", "a}b", "a}:lease", "ü/1", "ü/2", "\\", "a?"];
    for name in names {
        take(scene, name).await;
    }
    let found = async |pattern: &str| {
        let found = scanned(&scene.calls(), pattern).await;
        found.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("*").await.len(), names.len());
    assert_eq!(found("a?").await, ["a?", "ab"]);
    assert_eq!(found("?/[2-9]").await, ["ü/2"]);
    assert_eq!(found("*:lease").await, ["a}:lease"]);
    assert_eq!(found("b*").await, [""; 0]);
    for name in names {
        assert_eq!(found(NamePattern::literal(&named(name)).as_str()).await, [name]);
    }
}

/// A scan writes nothing.
pub(crate) async fn a_scan_changes_nothing(scene: &Scene) {
    scene.granted(alice(1)).await;
    let before = scene.snapshot().await;
    scanned(&scene.calls(), "*").await;
    scene.assert_same(&before, &scene.snapshot().await, "scanned");
}

/// Looks at many locks are answered as looks at each of them are.
pub(crate) async fn many_looks_are_answered_in_order(scene: &Scene) {
    let names: Vec<LockName> = (0..40).map(|n| named(&format!("many/{n}"))).collect();
    for name in names.iter().step_by(2) {
        take(scene, name.as_str()).await;
    }
    let seen = scene.calls().inspect_all(&names).await.expect("inspect_all");
    assert_eq!(seen.len(), names.len());
    for (n, seen) in seen.into_iter().enumerate() {
        let is_held = matches!(seen, Ok(Inspection::Held(lease)) if lease.id == alice(1));
        assert_eq!(is_held, n % 2 == 0, "{n}");
    }
}
