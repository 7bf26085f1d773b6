//! Leases on several independent servers, under everything that can go wrong: stores without
//! runtimes, so that tries overlap that a runtime seldom makes overlap.

mod mutants;
mod plan;
mod run;
mod shares;
mod worker;

#[test]
fn seeds() {
    run::gate(0..400);
}
