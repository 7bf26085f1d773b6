//! How long counters are kept: for the retention of their name, whatever else its commands share.

use futures_util::future::join_all;
use leasehold_core::{
    AcquisitionId, Fence, Ttl,
    store::{AcquireAnswer, ForceReleaseAnswer, Inspection, ReleaseAnswer, RenewAnswer},
};

use crate::contract::{Calls, RETENTION, RETENTION_OF_JOBS, Scene, alice, bob, secs, ttl};

/// Names of both retentions, in turns.
const NAMES: usize = 130;

fn is_job(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// Calls about each of them.
fn all(scene: &Scene) -> Vec<Calls> {
    let kind = |number| if is_job(number) { "jobs" } else { "orders" };
    (0..NAMES).map(|number| scene.calls().about(&format!("{}/{number}", kind(number)))).collect()
}

fn granted(answer: &AcquireAnswer) -> Fence {
    let AcquireAnswer::Granted(granted) = answer else { panic!("expected a grant: {answer:?}") };
    granted.first
}

/// Grants each of them, one after the other.
async fn grant_each(all: &[Calls], ttl: Ttl) -> Vec<Fence> {
    let mut fences = Vec::new();
    for (number, calls) in (1..).zip(all) {
        fences.push(granted(&calls.acquire(alice(number), ttl, None).await.expect("acquire")));
    }
    fences
}

async fn release_each(all: &[Calls], id: fn(u64) -> AcquisitionId, fences: &[Fence]) {
    let each = (1..).zip(all).zip(fences);
    let releases = each.map(|((number, calls), fence)| calls.release(id(number), *fence, None));
    for answer in join_all(releases).await {
        assert_eq!(answer.expect("release"), ReleaseAnswer::Released);
    }
}

/// Expects counters that were set or refreshed just now, each for the retention of its name or up to an
/// eighth longer.
async fn expect_retentions(scene: &Scene) {
    let all = all(scene);
    let mut passed = secs(0);
    for (until, orders, jobs) in [
        (RETENTION.saturating_sub(secs(60)), true, true),
        (RETENTION + RETENTION / 8, false, true),
        (RETENTION_OF_JOBS.saturating_sub(secs(60)), false, true),
        (RETENTION_OF_JOBS + RETENTION_OF_JOBS / 8, false, false),
    ] {
        scene.pass(until.saturating_sub(passed)).await;
        passed = until;
        for (number, calls) in all.iter().enumerate() {
            let expected = if is_job(number) { jobs } else { orders };
            match calls.inspect().await.expect("inspect") {
                Inspection::Free { last_fence } => {
                    assert_eq!(last_fence.is_some(), expected, "{} after {until:?}", calls.name());
                }
                Inspection::Held(record) => panic!("{} is held by {record:?}", calls.name()),
            }
        }
    }
}

/// A name that matches a pattern has the retention of the pattern, and others that of all.
pub(crate) async fn a_name_has_the_retention_of_its_pattern(scene: &Scene) {
    let all = all(scene);
    let fences = grant_each(&all, ttl(60)).await;
    release_each(&all, alice, &fences).await;
    expect_retentions(scene).await;
}

/// Commands that are on their way at once may share calls, and have their own retentions all the same: a counter is
/// refreshed when less than the retention of its name is left.
pub(crate) async fn names_that_are_asked_for_at_once_have_their_own_retention(scene: &Scene) {
    let all = all(scene);
    let fences = grant_each(&all, ttl(60)).await;
    release_each(&all, alice, &fences).await;
    scene.pass(secs(1200)).await;
    let each = (1..).zip(&all);
    let asked = join_all(each.map(|(number, calls)| calls.acquire(bob(number), ttl(60), None)));
    let answers: Result<Vec<_>, _> = asked.await.into_iter().collect();
    let fences: Vec<_> = answers.expect("acquire").iter().map(granted).collect();
    release_each(&all, bob, &fences).await;
    expect_retentions(scene).await;
}

/// A heartbeat that finds a lock free is a grant, whatever else is in its batch.
pub(crate) async fn each_of_a_batch_of_heartbeats_has_its_own_retention(scene: &Scene) {
    let all = all(scene);
    let waiter =
        |(number, calls): (_, &Calls)| calls.waiter(alice(number), ttl(60), None, Scene::beat(1));
    let batch: Vec<_> = (1..).zip(&all).map(waiter).collect();
    let fences: Vec<_> = scene.heartbeat(&batch).await.iter().map(granted).collect();
    release_each(&all, alice, &fences).await;
    expect_retentions(scene).await;
}

/// A renewal refreshes the counter when less than its retention is left.
pub(crate) async fn each_of_a_batch_of_renewals_has_its_own_retention(scene: &Scene) {
    let all = all(scene);
    let fences = grant_each(&all, ttl(1800)).await;
    scene.pass(secs(1200)).await;
    let each = (1..).zip(&all).zip(&fences);
    let renewal = |((number, calls), fence): ((_, &Calls), &Fence)| {
        calls.renewal(alice(number), *fence, ttl(1800))
    };
    let answers = scene.renew_all(&each.map(renewal).collect::<Vec<_>>()).await;
    assert_eq!(answers.len(), NAMES);
    assert!(answers.iter().all(|answer| matches!(answer, RenewAnswer::Renewed { .. })));
    release_each(&all, alice, &fences).await;
    expect_retentions(scene).await;
}

/// So does a forced release.
pub(crate) async fn a_forced_release_leaves_a_name_its_own_retention(scene: &Scene) {
    let all = all(scene);
    let fences = grant_each(&all, ttl(1800)).await;
    scene.pass(secs(1200)).await;
    for ((number, calls), fence) in (1..).zip(&all).zip(&fences) {
        let answer = calls.force_release(alice(number), *fence).await.expect("force_release");
        assert!(matches!(answer, ForceReleaseAnswer::Ended { .. }), "{answer:?}");
    }
    expect_retentions(scene).await;
}
