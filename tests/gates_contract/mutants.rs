//! Gates that are wrong in one thing: the suite notices each.

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex},
};

use leasehold::Stamp;
use leasehold_testkit::{
    contract::Task,
    gates::{Faults, GATE_CASES, GateSubject, Outcome, run},
};

/// What is wrong with a gate.
const NOTHING: u8 = 0;
const TAKES_EQUAL_FENCES: u8 = 1;
const REFUSES_REPEATS: u8 = 2;
const COMPARES_TEXTS: u8 = 3;
const ADVANCE_IS_NO_GATE: u8 = 4;
const ONE_WATERMARK_FOR_ALL: u8 = 5;
const IGNORES_CASE: u8 = 6;
const ADVANCES_ANOTHER_SPELLING: u8 = 7;
const CUTS_LONG_NAMES: u8 = 8;

#[derive(Debug, Default)]
struct Mutant<const WRONG: u8>(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    watermarks: BTreeMap<String, Stamp>,
    values: BTreeMap<String, String>,
}

impl<const WRONG: u8> Mutant<WRONG> {
    fn resource(name: &str) -> String {
        match WRONG {
            ONE_WATERMARK_FOR_ALL => String::new(),
            IGNORES_CASE => name.to_lowercase(),
            CUTS_LONG_NAMES => name.chars().take(1_024).collect(),
            _ => name.to_owned(),
        }
    }

    fn admit(kept: &mut Kept, resource: String, presented: Stamp) -> Outcome {
        let seen = kept.watermarks.get(&resource).copied();
        let is_newer = |seen: Stamp| match WRONG {
            COMPARES_TEXTS => presented.fence.to_string() > seen.fence.to_string(),
            TAKES_EQUAL_FENCES => presented.fence >= seen.fence,
            _ => presented.fence > seen.fence,
        };
        let is_repeat = |seen: Stamp| seen == presented && WRONG != REFUSES_REPEATS;
        match seen {
            Some(seen) if !is_newer(seen) && !is_repeat(seen) => Outcome::Stale(Some(seen)),
            _ => {
                kept.watermarks.insert(resource, presented);
                Outcome::Accepted
            }
        }
    }
}

impl<const WRONG: u8> GateSubject for Mutant<WRONG> {
    fn start() -> Task<'static, Arc<dyn GateSubject>> {
        Box::pin(async { Arc::new(Self::default()) as _ })
    }

    fn accepts(&self, _: &str) -> bool {
        true
    }

    fn write<'a>(&'a self, name: &'a str, value: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move {
            let mut kept = self.0.lock().unwrap();
            let outcome = Self::admit(&mut kept, Self::resource(name), presented);
            if outcome == Outcome::Accepted {
                kept.values.insert(name.to_owned(), value.to_owned());
            }
            outcome
        })
    }

    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move {
            let resource = match WRONG {
                ADVANCE_IS_NO_GATE => return Outcome::Accepted,
                ADVANCES_ANOTHER_SPELLING => Self::resource(&name.replace('~', "%7E")),
                _ => Self::resource(name),
            };
            Self::admit(&mut self.0.lock().unwrap(), resource, presented)
        })
    }

    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
        Box::pin(async move { self.0.lock().unwrap().values.get(name).cloned() })
    }

    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
        Box::pin(async move {
            self.0.lock().unwrap().values.insert(name.to_owned(), value.to_owned());
            Outcome::Accepted
        })
    }

    fn faults(&self) -> Option<&dyn Faults> {
        None
    }
}

/// The cases that a gate fails.
fn failed<const WRONG: u8>() -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fails = |name: &&str| {
        let play = AssertUnwindSafe(|| runtime.block_on(run::<Mutant<WRONG>>(name)));
        panic::catch_unwind(play).is_err()
    };
    GATE_CASES.iter().map(|case| case.name).filter(fails).collect()
}

#[test]
fn the_right_gate_fails_nothing() {
    assert_eq!(failed::<NOTHING>(), Vec::<&str>::new());
}

#[test]
fn every_wrong_gate_is_noticed() {
    for (failed, case) in [
        (failed::<TAKES_EQUAL_FENCES>(), "of_leases_with_one_fence_one_writes"),
        (failed::<REFUSES_REPEATS>(), "a_repeat_undoes_nothing_newer"),
        (failed::<COMPARES_TEXTS>(), "fences_are_compared_as_numbers"),
        (failed::<ADVANCE_IS_NO_GATE>(), "an_advance_shuts_out_where_nothing_is"),
        (failed::<ONE_WATERMARK_FOR_ALL>(), "one_thing_is_one_resource"),
        (failed::<IGNORES_CASE>(), "one_thing_is_one_resource"),
        (failed::<ADVANCES_ANOTHER_SPELLING>(), "an_advance_reaches_what_is_written_by_that_name"),
        (failed::<CUTS_LONG_NAMES>(), "one_thing_is_one_resource"),
    ] {
        assert!(failed.contains(&case), "{case}: {failed:?}");
    }
}
