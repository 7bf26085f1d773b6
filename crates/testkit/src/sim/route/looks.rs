use std::{collections::VecDeque, time::Duration};

use leasehold_core::Instant;

/// The looks of a process at a Cluster, and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// When the last ones ended that have told of owners.
    recent: VecDeque<Instant>,
    wrong: Vec<String>,
}

impl Looks {
    /// In such a time a look ends that follows a hint, and one of a caller that knew no owner before it.
    /// A third one may have told of none.
    const WINDOW: Duration = Duration::from_millis(20);
    const MOST: usize = 3;

    /// A look ends that is believed.
    pub(super) fn ends(&mut self, at: Instant) {
        self.recent.push_back(at);
        self.recent.retain(|other| at.saturating_since(*other) < Self::WINDOW);
        let count = self.recent.len();
        if count > Self::MOST {
            self.complain(format!("at {at:?} there were {count} looks in {:?}", Self::WINDOW));
        }
    }

    /// A view is believed that names the owners of so many slots; before, so many were known. Each
    /// slot has an owner at all times.
    pub(super) fn believed(&mut self, at: Instant, before: usize, after: usize) {
        if after < before {
            self.complain(format!("at {at:?} {after} owners were believed, and {before} known"));
        }
    }

    /// What is wrong; the first few of it.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.wrong.clone()
    }

    fn complain(&mut self, what: String) {
        if self.wrong.len() < 4 {
            self.wrong.push(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_looks_is_wrong_and_a_few_are_not() {
        let mut looks = Looks::default();
        let at = |millis| Instant::at(Duration::from_millis(millis));
        for millis in [1, 2, 3, 21, 22, 23] {
            looks.ends(at(millis));
        }
        assert_eq!(looks.wrong().len(), 0);
        looks.ends(at(24));
        assert_eq!(looks.wrong().len(), 1);
    }

    #[test]
    fn a_process_forgets_no_owner() {
        let mut looks = Looks::default();
        let at = Instant::default();
        looks.believed(at, 0, 2);
        looks.believed(at, 2, 2);
        assert_eq!(looks.wrong().len(), 0);
        looks.believed(at, 2, 0);
        assert_eq!(looks.wrong().len(), 1);
    }
}
