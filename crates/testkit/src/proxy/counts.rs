/// What a proxy has seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were reset as soon as they came, or because the server took none.
    pub refused: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Requests that came from clients.
    pub requests: u64,
    /// Replies that came from the server.
    pub replies: u64,
    /// Pushes that came from the server.
    pub pushes: u64,
    /// Messages that a rule or a storm struck.
    pub struck: u64,
    /// Messages that were lost behind a dropped one.
    pub lost_behind: u64,
}
