/// Why the program cannot go on; its text is all that a user sees.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
