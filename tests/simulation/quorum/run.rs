use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use leasehold_core::{LockStore, RuntimeId, store::Listener};
use leasehold_quorum::QuorumRules;
use leasehold_testkit::sim::{Dice, NodeMistake, QuorumWorld};

use super::{
    super::plan::millis,
    plan::{Act, CALM, PATIENCE, Plan, settings},
    worker::{Inbox, Lock, Post, Worker},
};

/// Other decisions than the real ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mutation {
    pub(crate) rules: QuorumRules,
    pub(crate) mistake: Option<NodeMistake>,
    pub(crate) believes_answers: bool,
}

/// What a run amounts to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) leases: usize,
    pub(crate) lost: usize,
    pub(crate) accepted: usize,
    pub(crate) commands: u64,
    /// What the nodes did for the acquisition that went wrong, if it is traced.
    pub(crate) log: Vec<String>,
}

/// Runs a seed.
pub(crate) fn run(seed: u64, mutation: Mutation, traced: bool) -> Outcome {
    let plan = Plan::draw(seed);
    let mut world = QuorumWorld::new(seed, &plan.aheads, settings(), plan.gale, mutation.mistake);
    if traced {
        world.trace();
    }
    let locks: Vec<_> = (0..plan.names).map(Lock::new).collect();
    let (ends, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let post: Post = Arc::new(world.post());
    let mut inboxes = Vec::new();
    let mut count = 0;
    for drift in &plan.drifts {
        let (process, local) = world.start(*drift);
        let store = Arc::new(world.store(process, mutation.rules));
        let runtime: RuntimeId = world.entropy(process).runtime_id();
        let inbox = Arc::new(Inbox::default());
        let listener: Weak<Inbox> = Arc::downgrade(&inbox);
        world.within(process, || store.listen(runtime, listener as Weak<dyn Listener>));
        let (numbers, watermarks) =
            (Arc::new(AtomicU64::new(1)), Arc::new(Mutex::new(BTreeMap::new())));
        for _ in 0..plan.workers {
            count += 1;
            let worker = Worker {
                number: count,
                store: Arc::clone(&store),
                inbox: Arc::clone(&inbox),
                local: local.clone(),
                world: world.clock(),
                drift: *drift,
                dice: Dice::new(seed ^ 0x0077_6f72 ^ (count << 40)),
                runtime,
                numbers: Arc::clone(&numbers),
                watermarks: Arc::clone(&watermarks),
                locks: locks.clone(),
                post: Arc::clone(&post),
                ttl: plan.ttl,
                ends: Arc::clone(&ends),
                done: Arc::clone(&done),
                believes_answers: mutation.believes_answers,
            };
            world.spawn(process, worker.run());
        }
        inboxes.push((inbox, store));
    }
    let start = world.now();
    for (at, act) in &plan.acts {
        world.run_until(start + *at);
        let now = world.now();
        match *act {
            Act::Pause { process, time } => world.pause(process, now + time),
            Act::Cut { process, node, time } => world.cut(process, node, now + time),
            Act::Fall { node, time, loses } => world.fell(node, now + time, loses),
        }
    }
    world.run_until(start + plan.span);
    // What was left behind in the storm runs out, and those out come back.
    world.clear_up(CALM);
    world.run_until(start + plan.span + settings().stay_out() + millis(2_000));
    ends.store(true, Ordering::Relaxed);
    let mut outcome = Outcome::default();
    let mut patience = 400;
    while done.load(Ordering::Relaxed) < count && patience > 0 {
        patience -= 1;
        world.run_until(world.now() + millis(10));
    }
    if patience == 0 {
        outcome.violations.push("a worker has not come to its end".into());
    }
    // Much sooner than a ttl.
    world.run_until(world.now() + PATIENCE + millis(40));
    for lock in &locks {
        let holders = world.holders(&lock.name);
        if let Some((_, id, _)) = holders.first() {
            let name = &lock.name;
            outcome.violations.push(format!("{name} is held, and nobody is there: {holders:?}"));
            let id = id.to_string();
            outcome.log = world.traced().into_iter().filter(|line| line.contains(&id)).collect();
        }
        match lock.history.check_strictly() {
            Ok(summary) => {
                if summary.refused_in_belief > 0 {
                    outcome
                        .violations
                        .push(format!("{}: a believed holder was refused", lock.name));
                }
                outcome.leases += summary.leases;
                outcome.lost += summary.lost;
                outcome.accepted += summary.accepted;
            }
            Err(violations) => {
                let named =
                    violations.iter().map(|violation| format!("{}: {violation}", lock.name));
                outcome.violations.extend(named);
            }
        }
    }
    outcome.commands = world.sent();
    drop(inboxes);
    outcome
}

/// Runs seeds on all cores, and returns them in order until one has failed.
pub(crate) fn first_failure(
    seeds: Range<u64>,
    mutation: Mutation,
) -> (Vec<Outcome>, Option<(u64, Outcome)>) {
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(None);
    let all = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || failed.lock().unwrap().is_some() {
                        return;
                    }
                    let outcome = run(seed, mutation, false);
                    if !outcome.violations.is_empty() {
                        let mut failed = failed.lock().unwrap();
                        let is_first = failed.as_ref().is_none_or(|(known, _)| *known > seed);
                        if is_first {
                            *failed = Some((seed, outcome));
                        }
                        return;
                    }
                    all.lock().unwrap().push(outcome);
                }
            });
        }
    });
    (all.into_inner().unwrap(), failed.into_inner().unwrap())
}

/// The seeds of the gate, or those that `LEASEHOLD_QUORUM_SEEDS=from..to` names.
pub(crate) fn gate(seeds: Range<u64>) {
    let named = std::env::var("LEASEHOLD_QUORUM_SEEDS").ok();
    let named = named.and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let (outcomes, failed) = first_failure(named.unwrap_or(seeds), Mutation::default());
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    println!(
        "{} runs, {} leases, {} lost, {} writes accepted, {} commands",
        outcomes.len(),
        sum(|one| one.leases),
        sum(|one| one.lost),
        sum(|one| one.accepted),
        outcomes.iter().map(|one| one.commands).sum::<u64>(),
    );
    if let Some((seed, outcome)) = failed {
        let log = run(seed, Mutation::default(), true).log.join("\n");
        let plan = Plan::draw(seed);
        panic!("quorum seed {seed}: {:#?}\n{plan:#?}\n{log}", outcome.violations);
    }
    assert!(sum(|one| one.leases) > outcomes.len() * 5, "too quiet");
}
