use std::collections::BTreeSet;

use super::*;
use crate::Key;

#[test]
fn first_renewals_fall_evenly_into_a_third_of_the_ttl() {
    let mut scene = Scene::new();
    let start = scene.clock.now();
    scene.take(MANY, ttl(30));
    // The earliest are due again when the last are due for the first time.
    scene.run(start + SECOND * 9, &mut fine);
    let tenths = scene.renewed(start, SECOND, 9);
    assert!(tenths.iter().all(|&renewed| (850..1150).contains(&renewed)), "{tenths:?}");
    scene.run(start + SECOND * 10 + MS * 10, &mut fine);
    assert!(scene.all_are_held() && scene.sent.iter().all(|(at, _)| *at > start));
}

#[test]
fn renewals_stay_even_and_travel_together() {
    let mut scene = Scene::new();
    let start = scene.clock.now();
    scene.take(MANY, ttl(30));
    scene.run(start + SECOND * 110, &mut fine);
    let seconds = scene.renewed(start, SECOND, 110);
    let mean = seconds.iter().sum::<usize>() / seconds.len();
    // A second has some four full commands.
    let even = |&renewed: &usize| renewed * 2 > mean && renewed * 2 < mean * 3;
    // Periods are a third of the ttl, less up to a twentieth of that: second renewals begin before
    // first ones end.
    assert!((1000..1100).contains(&mean) && seconds.iter().all(even), "{mean}, {seconds:?}");
    let commands = scene.sent.len();
    assert!(mean * seconds.len() >= commands * 240, "{commands} commands");
    assert!(scene.lags.iter().all(|lag| *lag <= MS), "{:?}", scene.lags.iter().max());
    assert!(scene.all_are_held());
}

#[test]
fn turns_of_several_ttls_fill_commands_of_their_own() {
    let mut scene = Scene::new();
    let start = scene.clock.now();
    for seconds in [30, 45, 60] {
        scene.take(MANY, ttl(seconds));
    }
    scene.run(start + SECOND * 60, &mut fine);
    let renewed: usize = scene.sent.iter().map(|(_, turns)| turns).sum();
    let commands = scene.sent.len();
    assert!(renewed >= commands * 100, "{renewed} in {commands} commands");
    assert!(scene.all_are_held());
}

/// A connection is a black hole for 10 s: what is sent on it fails at its deadline, a sixth of the
/// ttl, and the first such failure replaces it. One command in twenty fails besides.
#[test]
fn a_black_hole_and_random_failures_lose_nothing() {
    let mut scene = Scene::new();
    let start = scene.clock.now();
    scene.take(MANY, ttl(30));
    let dice = TestEntropy::default();
    let (hole, replaced) = (start + SECOND * 20, start + SECOND * 25);
    let (mut failed, mut swallowed) = (0, 0);
    let mut weather = |now: Instant| {
        if now >= hole && now < replaced {
            swallowed += 1;
            return (SECOND * 5, Some(StoreErrorKind::Indeterminate));
        }
        let fails = dice.fraction() < 0.05;
        failed += usize::from(fails);
        (MS, fails.then_some(StoreErrorKind::Definite))
    };
    scene.run(start + SECOND * 100, &mut weather);
    assert!(failed > 10 && swallowed > 10, "{failed} failed, {swallowed} were swallowed");
    assert!(scene.all_are_held());
}

/// No command of a whole lease gets through, but the last that fits.
#[test]
fn a_lease_is_tried_thrice_before_it_ends() {
    let mut scene = Scene::new();
    let start = scene.clock.now();
    scene.take(MANY, ttl(30));
    let mut silence = |_: Instant| (SECOND * 5, Some(StoreErrorKind::Indeterminate));
    scene.run(start + SECOND * 29, &mut silence);
    let tries: usize = scene.sent.iter().map(|(_, turns)| turns).sum();
    assert!(tries as u64 >= MANY * 3, "{tries} tries of {MANY} leases");
    assert!(scene.all_are_held());
}

/// The names of one command may live in different parts of a store: one part fails without the
/// others.
#[test]
fn a_failure_of_some_renewals_of_a_command_leaves_the_others_renewed() {
    let mut scene = Scene::new();
    let start = scene.clock.now();
    scene.take(100, ttl(30));
    let sent_at = start + SECOND * 10;
    let work = scene.watches.take_due(sent_at).unwrap();
    let turns = work.batches.into_commands().next().unwrap().turns;
    assert_eq!(turns.len(), 100, "all are due");
    let number = |turn: &(Key, Arc<Grant>)| turn.1.id().number();
    let failed: BTreeSet<u64> = turns[..20].iter().map(number).collect();
    let failures = [StoreErrorKind::Indeterminate, StoreErrorKind::Definite].repeat(10);
    let failures = failures.into_iter().map(|kind| Err(StoreError::new(kind, "a storm", "wait")));
    let remaining = ttl(30).get();
    let renewed = vec![Ok(RenewAnswer::Renewed { remaining }); 80];
    let answers = Ok(failures.chain(renewed).collect());
    let renewed = AnsweredBatch { turns, sent_at, answers };
    assert!(renewed.apply(sent_at + MS, &scene.watches).is_empty(), "no turn is lost");
    // A twelfth of the ttl later, those that failed have been due, and no others.
    scene.clock.set(sent_at + SECOND * 3);
    let work = scene.watches.take_due(scene.clock.now()).unwrap();
    let again: Vec<_> = work.batches.into_commands().flat_map(|batch| batch.turns).collect();
    assert_eq!(again.iter().map(number).collect::<BTreeSet<u64>>(), failed);
    assert!(scene.all_are_held());
}

#[test]
fn names_of_each_part_of_the_store_have_a_command_of_their_own() {
    let scene = &mut Scene::new();
    let due_at = scene.clock.now() + SECOND * 10;
    scene.take(100, ttl(30));
    let work = scene.watches.take_due(due_at).unwrap();
    let batch = work.batches.into_commands().next().unwrap();
    let patience = batch.patience;
    let part = |name: &LockName| usize::from(name.as_str().ends_with('7'));
    let parts = batch.by_shard(part);
    let sizes: Vec<usize> = parts.iter().map(|batch| batch.turns.len()).collect();
    assert_eq!(sizes, [90, 10]);
    for (number, batch) in parts.into_iter().enumerate() {
        assert!(batch.turns.iter().all(|(_, turn)| part(turn.name()) == number));
        assert_eq!(batch.patience, patience);
        assert_eq!(batch.by_shard(part).len(), 1, "a batch of one part stays whole");
    }
}
