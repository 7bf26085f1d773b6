use std::fmt;

/// An answer, or why there is none.
pub(crate) type Reading<T> = Result<T, NotRead>;

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotRead {
    /// The user lacks the right.
    Denied,
    /// The server does not have the command, as on some managed services.
    Missing,
    /// There was no answer in time, or the connection ended.
    Silent,
    /// The server refused, with these words.
    Refused(String),
    /// The answer is not what Redis answers.
    Strange,
}

/// The second half of a sentence about a command.
impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("is denied to this user"),
            Self::Missing => f.write_str("does not exist on this server"),
            Self::Silent => f.write_str("was not answered"),
            Self::Refused(words) => write!(f, "was refused: {words}"),
            Self::Strange => f.write_str("was not answered as Redis does"),
        }
    }
}
