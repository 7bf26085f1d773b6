use crate::{
    Failure, commands, hand_overs, lengths::Lengths, memory, pairs, processes, renewals, replicas,
    table::Table, wake_ups,
};

/// A part of the benchmark, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Pairs,
    Scale,
    HandOvers,
    Replicas,
    Renewals,
    Commands,
    Memory,
    Processes,
    WakeUps,
}

impl Part {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Pairs,
        Self::Scale,
        Self::HandOvers,
        Self::Replicas,
        Self::Renewals,
        Self::Commands,
        Self::Memory,
        Self::Processes,
        Self::WakeUps,
    ];

    /// What the command line calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Scale => "scale",
            Self::HandOvers => "hand-overs",
            Self::Replicas => "replicas",
            Self::Renewals => "renewals",
            Self::Commands => "commands",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::WakeUps => "wake-ups",
        }
    }

    /// Starts its servers, and measures.
    pub(crate) fn measure(self, lengths: Lengths) -> Result<Vec<Table>, Failure> {
        match self {
            Self::Pairs => Ok(vec![pairs::measure(lengths)?]),
            Self::Scale => Ok(vec![pairs::scale(lengths)?]),
            Self::HandOvers => Ok(vec![hand_overs::measure(lengths)?]),
            Self::Replicas => Ok(vec![replicas::measure(lengths)?]),
            Self::Renewals => Ok(vec![renewals::measure(lengths)?]),
            Self::Commands => Ok(vec![commands::measure(lengths)?]),
            Self::Memory => Ok(vec![memory::measure(lengths)?]),
            Self::Processes => Ok(vec![processes::measure(lengths)?]),
            Self::WakeUps => wake_ups::measure(lengths),
        }
    }
}
