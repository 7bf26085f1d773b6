//! The protocol under everything that can go wrong, in virtual time: one seed is one run, and
//! the same run again.
//!
//! `LEASEHOLD_SEEDS=from..to` chooses other seeds, `LEASEHOLD_SEED=n` replays one with its log.

mod bounds;
mod held;
mod kind;
mod mutants;
mod panics;
mod plan;
mod punctual;
mod quorum;
mod run;
mod runner;
mod scene;
mod several;
mod storage;
mod topology;
mod verdict;
mod worker;

#[test]
fn seeds() {
    runner::gate(0..2_000);
}

#[test]
fn a_run_replays_from_its_seed() {
    for seed in [2, 3, 6, 17, 22, 42] {
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
