//! The protocol under everything that can go wrong, in virtual time: one seed is one run, and
//! the same run again.
//!
//! `LEASEHOLD_SEEDS=from..to` chooses other seeds, `LEASEHOLD_SEED=n` replays one with its log.

#[path = "simulation/bounds.rs"]
mod bounds;
#[path = "simulation/held.rs"]
mod held;
#[path = "simulation/kind.rs"]
mod kind;
#[path = "simulation/mutants.rs"]
mod mutants;
#[path = "simulation/panics.rs"]
mod panics;
#[path = "simulation/plan.rs"]
mod plan;
#[path = "simulation/punctual.rs"]
mod punctual;
#[path = "simulation/run.rs"]
mod run;
#[path = "simulation/runner.rs"]
mod runner;
#[path = "simulation/scene.rs"]
mod scene;
#[path = "simulation/storage.rs"]
mod storage;
#[path = "simulation/verdict.rs"]
mod verdict;
#[path = "simulation/worker.rs"]
mod worker;

#[test]
fn seeds() {
    runner::gate(0..2_000);
}

#[test]
fn a_run_replays_from_its_seed() {
    for seed in [3, 17, 42] {
        let (one, first) = run::run(seed, mutants::Mutation::none(), true);
        let (two, second) = run::run(seed, mutants::Mutation::none(), true);
        assert_eq!(first.steps().len(), second.steps().len());
        for (first, second) in first.steps().iter().zip(second.steps()) {
            assert_eq!(first, second);
        }
        assert_eq!(one, two);
        assert!(first.steps().len() > 100, "seed {seed}: too quiet a run");
    }
}
