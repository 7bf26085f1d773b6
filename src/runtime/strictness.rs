/// What a connect does about findings on its servers: see
/// [`LockRuntimeBuilder::strictness`](crate::LockRuntimeBuilder::strictness).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Strictness {
    /// The servers are not examined.
    Ignore,
    /// Findings are logged.
    #[default]
    Warn,
    /// Findings are logged, and connecting fails if one of them is a warning or a danger. What
    /// could not be examined is only a notice.
    Refuse,
}
