/// How an acquisition wants a lock: alone, or together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Mode {
    /// Alone.
    #[default]
    Write,
    /// Together with other readers, under one fence that all of them share.
    Read,
}
