use std::{collections::BTreeSet, sync::Arc};

use super::StoreError;
use crate::types::{LockName, NamePattern};

/// Asks for the names of some locks that a store knows, in one step that is short however many there are.
///
/// A lock that is there from the first step to the last is named, held or not, unless the store moves it
/// meanwhile from one part to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Which names are meant.
    pub pattern: NamePattern,
    /// From where to go on; that of the page before.
    pub cursor: ScanCursor,
}

/// The answer to a [`Scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPage {
    /// Some names; whether anybody holds these locks is not known. One may come twice.
    pub names: Vec<LockName>,
    /// Why a part of the store, such as a master of a Cluster, is left out.
    pub failed: Option<StoreError>,
    /// From where to go on; `None` at the end.
    pub next: Option<ScanCursor>,
}

impl ScanPage {
    /// Behind the last step.
    #[doc(hidden)]
    pub fn end() -> Self {
        Self { names: Vec::new(), failed: None, next: None }
    }
}

/// How far the scan of a store has come; the default is the beginning.
///
/// A store may have parts, which are read one after the other, each by cursors of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanCursor {
    done: BTreeSet<Arc<str>>,
    present: Option<(Arc<str>, u64)>,
}

impl ScanCursor {
    /// Which of the parts that there are to read next, and from where; `None` if all were read.
    ///
    /// A part that is not there any more is left out, and one that is new meanwhile is read.
    pub fn next<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, u64)> {
        let mut first = None;
        for part in parts {
            match &self.present {
                Some((present, at)) if &**present == part => return Some((part, *at)),
                _ if first.is_none() && !self.done.contains(part) => first = Some((part, 0)),
                _ => {}
            }
        }
        first
    }

    /// Whether a part was read to its end.
    #[doc(hidden)]
    pub fn has_read(&self, part: &str) -> bool {
        self.done.contains(part)
    }

    /// The cursor behind a step in a part; `at` is where to go on in it, and `None` at its end.
    #[must_use]
    pub fn after(&self, part: &str, at: Option<u64>) -> Self {
        let mut done = self.done.clone();
        if let Some((left, _)) = self.present.as_ref().filter(|(left, _)| &**left != part) {
            done.insert(Arc::clone(left));
        }
        let part: Arc<str> = part.into();
        let Some(at) = at else {
            done.insert(part);
            return Self { done, present: None };
        };
        Self { done, present: Some((part, at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_one_after_the_other() {
        let start = ScanCursor::default();
        assert_eq!(start.next(["a", "b"]), Some(("a", 0)));
        let within = start.after("a", Some(7));
        assert_eq!(within.next(["a", "b"]), Some(("a", 7)));
        let behind = within.after("a", None);
        assert_eq!(behind.next(["a", "b"]), Some(("b", 0)));
        assert_eq!(behind.after("b", None).next(["a", "b"]), None);
    }

    #[test]
    fn a_part_that_has_left_is_left_out_and_a_new_one_is_read() {
        let within = ScanCursor::default().after("b", Some(7));
        assert_eq!(within.next(["a", "c"]), Some(("a", 0)));
        let after = within.after("a", None);
        assert_eq!(after.next(["a", "b", "c"]), Some(("c", 0)), "b was begun, and is not there");
        assert_eq!(after.after("c", None).next(["a", "b", "c"]), None);
    }
}
