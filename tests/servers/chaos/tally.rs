use std::{cell::RefCell, collections::BTreeMap, fmt, iter::Sum, rc::Rc, str::FromStr};

/// What the tasks of a process have seen so far, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, count)| (what.as_str(), *count))
    }

    fn add(&mut self, what: &str, count: u64) {
        if let Some(sum) = self.0.get_mut(what) {
            *sum += count;
        } else {
            self.0.insert(what.into(), count);
        }
    }
}

/// As a line of words.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = self.0.iter();
        pairs.try_for_each(|(what, count)| write!(f, "{what}={count} "))
    }
}

impl FromStr for Tally {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let pairs = line.split_whitespace().map(|pair| {
            let (what, count) = pair.split_once('=').ok_or_else(|| pair.to_owned())?;
            Ok((what.to_owned(), count.parse().map_err(|_| pair.to_owned())?))
        });
        pairs.collect::<Result<_, String>>().map(Self)
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        let mut all = Self::default();
        for tally in tallies {
            tally.iter().for_each(|(what, count)| all.add(what, count));
        }
        all
    }
}

/// The tally of a process of one thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counting(Rc<RefCell<Tally>>);

impl Counting {
    pub(crate) fn count(&self, what: &str) {
        self.0.borrow_mut().add(what, 1);
    }

    pub(crate) fn so_far(&self) -> Tally {
        self.0.borrow().clone()
    }
}
