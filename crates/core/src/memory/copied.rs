use super::row::{Row, ServerTime};

/// What a store knew of a name at one moment, for the replicas of a simulated server.
#[derive(Debug, Clone)]
pub struct Copied {
    row: Row,
    /// By the clock of the store that it was copied from.
    at: ServerTime,
}

impl Copied {
    pub(super) fn of(row: &Row, at: ServerTime) -> Self {
        Self { row: row.clone(), at }
    }

    pub(super) fn row(&self) -> Row {
        self.row.clone()
    }

    /// Whether nothing was known.
    pub fn is_empty(&self) -> bool {
        self.row.ends().is_some_and(|ends| ends <= self.at)
    }
}
