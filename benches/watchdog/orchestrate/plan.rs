use std::{fmt, time::Duration};

use crate::{Failure, table::Key};

/// How many leases there are in full runs.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// How many there are in the quick pass.
const QUICK: usize = 200;

/// Who renews, and through what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The library.
    Leasehold,
    /// A task for each lease.
    TaskEach,
    /// The library, while calls fail and its connection for renewals is a black hole for a third of
    /// the ttl.
    Faulty,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) leases: usize,
    pub(crate) subject: Subject,
    pub(crate) ttl: Duration,
    pub(crate) seconds: u64,
}

/// Which runs there are.
#[derive(Debug)]
pub(crate) struct Plan {
    sizes: Vec<usize>,
    words: Vec<String>,
    ttl: Duration,
    seconds: u64,
}

impl Plan {
    /// Reads the command line.
    pub(crate) fn of(arguments: &[String]) -> Result<Self, Failure> {
        let quick = arguments.iter().any(|argument| argument == "--test");
        let (ttl, seconds) = if quick { (1, 3) } else { (30, 90) };
        let mut plan =
            Self { sizes: Vec::new(), words: Vec::new(), ttl: Duration::from_secs(ttl), seconds };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--seconds" => {
                    plan.seconds = rest.next().ok_or("--seconds has no value")?.parse()?;
                }
                option if option.starts_with("--") => {}
                word => match word.parse() {
                    Ok(size) => plan.sizes.push(size),
                    Err(_) => plan.words.push(word.into()),
                },
            }
        }
        if plan.sizes.is_empty() {
            plan.sizes = if quick { vec![QUICK] } else { SIZES.into() };
        }
        Ok(plan)
    }

    /// The runs, in their order.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let of_size = |&leases: &usize| {
            let (ttl, seconds) = (self.ttl, self.seconds);
            Subject::ALL.map(|subject| Run { leases, subject, ttl, seconds })
        };
        // Faults strike the most leases only.
        let most = self.sizes.iter().max().copied().unwrap_or_default();
        let has_place = |run: &Run| run.subject != Subject::Faulty || run.leases == most;
        let wanted = |run: &Run| has_place(run) && self.wants(run.subject);
        self.sizes.iter().flat_map(of_size).filter(wanted).collect()
    }

    fn wants(&self, subject: Subject) -> bool {
        let name = subject.to_string();
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word))
    }
}

impl Run {
    /// The row of a table.
    pub(super) fn row(&self) -> Key {
        Key::new(&format!("{} leases", self.leases), &"", &self.subject.to_string())
    }
}

impl Subject {
    /// All of them.
    const ALL: [Self; 3] = [Self::Leasehold, Self::TaskEach, Self::Faulty];

    /// The word by which a worker process knows it.
    pub(crate) fn worker(self) -> &'static str {
        match self {
            Self::Leasehold | Self::Faulty => "leasehold",
            Self::TaskEach => "task-per-lease",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leasehold => "leasehold",
            Self::TaskEach => "task-per-lease",
            Self::Faulty => "faulty",
        })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} leases, {}", self.leases, self.subject)
    }
}
