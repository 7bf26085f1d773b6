//! The gate in memory, before a map.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use leasehold::{
    Stamp,
    fencing::{FenceGate, MemoryGate},
};
use leasehold_testkit::{
    contract::Task,
    gates::{Faults, GateSubject, Outcome},
};

use super::words::outcome;

#[derive(Debug, Default)]
pub(crate) struct MemorySubject {
    gate: MemoryGate,
    kept: Mutex<BTreeMap<String, String>>,
}

impl MemorySubject {
    fn keep(&self, name: &str, value: &str) {
        self.kept.lock().unwrap().insert(name.to_owned(), value.to_owned());
    }
}

impl GateSubject for MemorySubject {
    fn start() -> Task<'static, Arc<dyn GateSubject>> {
        Box::pin(async { Arc::new(Self::default()) as _ })
    }

    fn accepts(&self, _: &str) -> bool {
        true
    }

    fn write<'a>(&'a self, name: &'a str, value: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move {
            let written = self.gate.write(name, presented, || self.keep(name, value));
            outcome(written.map_err(Into::into))
        })
    }

    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move { outcome(self.gate.advance(name, presented).await) })
    }

    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
        Box::pin(async move { self.kept.lock().unwrap().get(name).cloned() })
    }

    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
        Box::pin(async move {
            self.keep(name, value);
            Outcome::Accepted
        })
    }

    /// The write runs in the gate itself.
    fn faults(&self) -> Option<&dyn Faults> {
        None
    }
}
