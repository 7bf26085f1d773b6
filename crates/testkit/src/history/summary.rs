use std::time::Duration;

use super::violation::Overlap;

/// What a history that holds together amounts to: a checker that saw nothing shows it here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// How often the lock was asked for.
    pub asked: usize,
    /// How many leases were granted.
    pub leases: usize,
    /// How many leases were given back.
    pub released: usize,
    /// How many leases were lost.
    pub lost: usize,
    /// How many writes the storage accepted.
    pub accepted: usize,
    /// How many writes the storage refused.
    pub refused: usize,
    /// How many refused writes were sent while their lease was still believed in; zero as long as
    /// the server kept its data.
    pub refused_in_belief: usize,
    /// How many increments of the counter were accepted.
    pub increments: u64,
    /// The times in which two leases were believed in; each lease at most once as the second.
    pub overlaps: Vec<Overlap>,
    /// How many grants a spy saw at the server.
    pub turns: usize,
    /// How many locks a spy saw the server keep closed after their release.
    pub kept: usize,
    /// How often a spy saw another server become the master.
    pub takeovers: usize,
    /// How often that server lacked something that was written about the lock.
    pub behind: usize,
    /// How many grants a spy saw at servers that were masters no more.
    pub aside: usize,
    /// The longest time of those below, in thousandths of what was to be at most.
    pub tightest: u32,
    /// The longest time in which nothing went wrong, somebody waited and nobody believed.
    pub longest_gap: Duration,
}
