//! Gates that are wrong in one thing: the suite notices each.

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold::Stamp;
use leasehold_testkit::{
    contract::Task,
    gates::{Faults, GATE_CASES, GateSubject, Outcome, run},
};
use tokio::sync::watch;

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
/// It compares, and writes in a second step.
const COMPARES_FIRST: u8 = 9;
/// It writes the value, and moves the watermark in a second step.
const WRITES_FIRST: u8 = 10;

/// A gate before a map, with a network of its own.
#[derive(Debug, Default)]
struct Mutant<const WRONG: u8> {
    kept: Mutex<Kept>,
    network: Network,
}

#[derive(Debug, Default)]
struct Kept {
    watermarks: BTreeMap<String, Stamp>,
    values: BTreeMap<String, String>,
}

/// What lies between a writer and the map. A write passes it once: before the gate's only step, or
/// between the two steps of a gate that is wrong.
#[derive(Debug, Default)]
struct Network {
    fault: Mutex<Option<Fault>>,
    has_struck: AtomicBool,
    /// Whether a write is held.
    held: watch::Sender<bool>,
    /// Whether the write that was held has ended, or its writer has gone.
    ended: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    LoseAnswer(Stamp),
    Hold(Stamp),
    /// 0: on the way to the map. Later: when the write is done.
    Crash(u64),
}

/// A write that was held, until it has ended.
struct Ending<'a>(&'a Network);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ended.send_replace(true);
    }
}

impl Network {
    fn expect(&self, fault: Fault) {
        self.has_struck.store(false, Ordering::SeqCst);
        self.held.send_replace(false);
        self.ended.send_replace(false);
        *self.fault.lock().unwrap() = Some(fault);
    }

    /// Whether this fault is asked for. It strikes once.
    fn strikes(&self, fault: Fault) -> bool {
        let mut asked = self.fault.lock().unwrap();
        let strikes = *asked == Some(fault);
        if strikes {
            *asked = None;
            self.has_struck.store(true, Ordering::SeqCst);
        }
        strikes
    }

    /// Holds a write that is to be held.
    async fn pass(&self, of: Stamp) -> Option<Ending<'_>> {
        if !self.strikes(Fault::Hold(of)) {
            return None;
        }
        let ending = Ending(self);
        self.held.send_replace(true);
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        Some(ending)
    }

    /// What the writer is told of a write that took effect.
    fn told(&self, of: Stamp) -> Outcome {
        if self.strikes(Fault::LoseAnswer(of)) { Outcome::Unknown } else { Outcome::Accepted }
    }
}

impl Faults for Network {
    fn lose_answer(&self, of: Stamp, _gated: bool) {
        self.expect(Fault::LoseAnswer(of));
    }

    fn hold(&self, of: Stamp) {
        self.expect(Fault::Hold(of));
    }

    fn held(&self) -> Task<'_> {
        Box::pin(async { drop(self.held.subscribe().wait_for(|held| *held).await) })
    }

    fn has_struck(&self) -> bool {
        self.has_struck.load(Ordering::SeqCst)
    }

    fn crash_points(&self) -> u64 {
        2
    }

    fn crash_at(&self, point: u64) {
        self.expect(Fault::Crash(point));
    }

    fn calm(&self) {
        *self.fault.lock().unwrap() = None;
    }

    fn deliver(&self) -> Task<'_> {
        self.held.send_replace(false);
        Box::pin(async { drop(self.ended.subscribe().wait_for(|ended| *ended).await) })
    }
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

    fn keep(&self, name: &str, value: &str) {
        self.kept.lock().unwrap().values.insert(name.to_owned(), value.to_owned());
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
            let admit =
                || Self::admit(&mut self.kept.lock().unwrap(), Self::resource(name), presented);
            // The first step of a gate that has two.
            match WRONG {
                COMPARES_FIRST => {
                    let outcome = admit();
                    if outcome != Outcome::Accepted {
                        return outcome;
                    }
                }
                WRITES_FIRST => self.keep(name, value),
                _ => {}
            }
            let _ending = self.network.pass(presented).await;
            if self.network.strikes(Fault::Crash(0)) {
                return Outcome::Failed;
            }
            if WRONG == COMPARES_FIRST {
                self.keep(name, value);
                return self.network.told(presented);
            }
            let outcome = admit();
            if outcome != Outcome::Accepted {
                return outcome;
            }
            self.keep(name, value);
            self.network.told(presented)
        })
    }

    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move {
            let resource = match WRONG {
                ADVANCE_IS_NO_GATE => return Outcome::Accepted,
                ADVANCES_ANOTHER_SPELLING => Self::resource(&name.replace('~', "%7E")),
                _ => Self::resource(name),
            };
            Self::admit(&mut self.kept.lock().unwrap(), resource, presented)
        })
    }

    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
        Box::pin(async move { self.kept.lock().unwrap().values.get(name).cloned() })
    }

    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
        Box::pin(async move {
            // The value is the text of its writer's stamp.
            let writer: Stamp = value.parse().expect("the suite writes stamps");
            let _ending = self.network.pass(writer).await;
            self.keep(name, value);
            self.network.told(writer)
        })
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(&self.network)
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
        (failed::<COMPARES_FIRST>(), "a_write_that_arrives_late_is_refused"),
        (failed::<WRITES_FIRST>(), "a_writer_that_crashes_leaves_no_value_without_its_watermark"),
    ] {
        assert!(failed.contains(&case), "{case}: {failed:?}");
    }
}

/// The suite does not pass over a fault that does not strike, or that nobody can ask for.
#[test]
fn a_subject_without_the_faults_of_a_case_is_noticed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for case in GATE_CASES {
        let play = run::<super::memory::MemorySubject>(case.name);
        let play = AssertUnwindSafe(|| runtime.block_on(play));
        assert_eq!(panic::catch_unwind(play).is_err(), case.needs_faults(), "{case:?}");
    }
}
