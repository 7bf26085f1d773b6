use std::time::Duration;

const TOLERANCE: Duration = Duration::from_secs(10 * 60);

/// What a store answered, with tokens by rank, and the times of it apart.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) words: String,
    pub(crate) times: Vec<Duration>,
}

impl Answer {
    pub(crate) fn just(words: impl Into<String>) -> Self {
        Self { words: words.into(), times: Vec::new() }
    }

    pub(crate) fn timed(words: impl Into<String>, time: Duration) -> Self {
        Self { words: words.into(), times: vec![time] }
    }

    /// Adds another answer of the same step.
    pub(crate) fn and(&mut self, other: Self) {
        self.words += " | ";
        self.words += &other.words;
        self.times.extend(other.times);
    }

    /// Whether both say the same, but for the time that passes.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let close = |(a, b): (&Duration, &Duration)| a.abs_diff(*b) < TOLERANCE;
        self.words == other.words
            && self.times.len() == other.times.len()
            && self.times.iter().zip(&other.times).all(close)
    }
}
