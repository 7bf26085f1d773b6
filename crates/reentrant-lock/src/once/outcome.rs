use super::{duplicate::Duplicate, guard::OnceGuard};

/// What beginning a run came to.
#[derive(Debug)]
#[must_use = "a run that is dropped counts as failed"]
pub enum Begun {
    /// The caller is the first, and runs.
    First(OnceGuard),
    /// Another caller came first.
    Duplicate(Duplicate),
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it says whether the work was done here"]
pub enum OnceOutcome<T> {
    /// The work was done here. The door is closed for the window, or, where the server never hears
    /// of it, until the lease's ttl is over.
    Ran(T),
    /// Another caller came first; nothing was done here.
    Duplicate(Duplicate),
}

impl<T> OnceOutcome<T> {
    /// What the work returned, where it was done here.
    pub fn ran(self) -> Option<T> {
        match self {
            Self::Ran(value) => Some(value),
            Self::Duplicate(_) => None,
        }
    }
}
