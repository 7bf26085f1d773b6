use std::fmt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// No promise is known to be endangered: something could not be examined, or is worth knowing.
    Notice,
    /// A promise fails, or locks cannot be had, if something else happens: a restart, a failover, a
    /// partition, a step of a clock.
    Warning,
    /// A promise fails in ordinary use, or locks cannot be had now.
    Danger,
}

impl Severity {
    /// The severity as one word.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Danger => "danger",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_label())
    }
}
