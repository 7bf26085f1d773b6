use std::collections::BTreeSet;

use super::{row::Row, time::ServerTime};
use crate::types::{LockName, NameMap};

/// The rows of all names; a row goes when nothing of it is left.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    rows: NameMap<Row>,
    ends: BTreeSet<(ServerTime, LockName)>,
}

impl Keyspace {
    /// Applies a rule to the row of a name, and forgets rows whose time is over.
    pub(crate) fn with<T>(
        &mut self,
        now: ServerTime,
        name: &LockName,
        rule: impl FnOnce(&mut Row) -> T,
    ) -> T {
        self.forget_ended(now);
        let row = self.rows.entry(name.clone()).or_default();
        let before = row.ends();
        let answer = rule(row);
        let after = row.ends();
        if let Some(before) = before.filter(|before| Some(*before) != after) {
            self.ends.remove(&(before, name.clone()));
        }
        match after {
            // Nothing is left, or nothing ever was: a look at an unknown name.
            Some(after) if after <= now => drop(self.rows.remove(name)),
            Some(after) => drop(self.ends.insert((after, name.clone()))),
            None => {}
        }
        answer
    }

    /// How many names have a row at `now`.
    pub(crate) fn len(&mut self, now: ServerTime) -> usize {
        self.forget_ended(now);
        self.rows.len()
    }

    /// Forgets everything, as `FLUSHALL` would.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
    }

    fn forget_ended(&mut self, now: ServerTime) {
        while let Some((ends, name)) = self.ends.first().cloned() {
            if ends > now {
                return;
            }
            self.ends.pop_first();
            if self.rows.get(&name).is_some_and(|row| row.ends() == Some(ends)) {
                self.rows.remove(&name);
            }
        }
    }
}
