use std::time::Duration;

use leasehold_testkit::{SentinelGroup, Violation};

use crate::{
    faults::server::scene,
    support::{
        crew::{Crew, Finished, Plan},
        matrix::row,
    },
};

row! {
    planned_failover: protected, control;
    fault: "an operator has another server take over (SENTINEL FAILOVER), under processes that ask two replicas for acknowledgements",
    right: "with all replicas asked, no two holders believe at once",
    control: "processes that ask one of the two replicas",
}

/// Holders that stay for a while: who has released believes no more.
const PLAN: Plan = Plan { hold: Duration::from_millis(300), ..Plan::PROTECTED };

/// So often another server takes over.
const FAILOVERS: usize = 3;
/// So often at most, until damage is seen.
const MOST: usize = 20;

fn protected() -> String {
    let group = SentinelGroup::start();
    let mut increments = 0;
    for _ in 0..FAILOVERS {
        let finished = fail_over(&group, 2);
        let found = |found| panic!("{found:#?}");
        increments += finished.history.check_strictly().unwrap_or_else(found).increments;
    }
    scene::leaves_nothing(group.master());
    format!("{FAILOVERS} failovers: no overlap, {increments} increments, none lost")
}

fn control() -> String {
    let group = SentinelGroup::start();
    for failovers in 1..=MOST {
        let found = fail_over(&group, 1).history.check_strictly().err().unwrap_or_default();
        let overlaps = found.iter().filter_map(|violation| match violation {
            Violation::TwoBelievers(overlap) => Some(overlap.by),
            _ => None,
        });
        if let Some(longest) = overlaps.clone().max() {
            let (count, longest) = (overlaps.count(), longest.as_millis());
            return format!(
                "{count} pairs of holders at once after {failovers} failovers, for up to {longest} ms"
            );
        }
    }
    panic!("the control came to no harm in {MOST} failovers");
}

/// Another server takes over under processes at work, which ask so many replicas.
fn fail_over(group: &SentinelGroup, replicas: u8) -> Finished {
    group.heal();
    let crew = Crew::start(&Plan { replicas, ..PLAN }, &group.url());
    crew.work(2);
    group.fail_over();
    crew.work(3);
    crew.finish()
}
