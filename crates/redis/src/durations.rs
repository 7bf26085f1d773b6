//! The durations that are no settings, each with its reason. A range holds pauses that grow from its
//! start to its end.

use std::{ops::RangeInclusive, time::Duration};

const fn millis(shortest: u64, longest: u64) -> RangeInclusive<Duration> {
    RangeInclusive::new(Duration::from_millis(shortest), Duration::from_millis(longest))
}

/// After how long a command that waits for others leaves without them, in whole milliseconds of timers.
pub(crate) const GATHERING: Duration = Duration::from_millis(1);
/// For how long nothing is gathered after a call that was not worth it.
pub(crate) const GATHERING_PAUSES: RangeInclusive<Duration> = millis(10, 10_000);
/// For how long a name goes alone whose command was not served.
pub(crate) const NAME_ALONE: Duration = Duration::from_millis(100);
/// A courier whose yields take longer than this finds the tokio runtime busy.
pub(crate) const SLOW_YIELD: Duration = Duration::from_millis(2);
/// For how long a finding is believed without another look: that the tokio runtime is busy, so that
/// couriers do not yield; that a server refuses; that an address leads to two masters.
pub(crate) const FINDING_LASTS: Duration = Duration::from_secs(1);

/// For how long the error of a failed dial or refresh is returned to all callers, so that a crowd asks
/// once.
pub(crate) const FAILURE_LASTS: Duration = Duration::from_millis(50);
/// How long a server may take that was fine before, until others are asked or heard; for how long other nodes
/// may still answer after the first, when all are to be heard; how long a TLS handshake may take until the server
/// is asked without TLS whether it speaks none; and how long a `HELLO` may take until it is tried whether the server
/// accepts connections at all.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// For how long a proof of a master counts. A call that is under way for as long again still runs
/// within a second of a demotion.
pub(crate) const PROOF_LASTS: Duration = Duration::from_millis(500);

/// How often a subscription is checked, by a `PING` and whether its listener lives; and how long the answer
/// to that `PING` may take. So one that is half open is noticed within five seconds.
pub(crate) const SUBSCRIPTION_CHECK: Duration = Duration::from_millis(2_500);
/// A subscription that ends sooner has failed: something may cut each one that is made.
pub(crate) const SETTLED: Duration = Duration::from_millis(50);
/// The pauses before a subscription is made anew.
pub(crate) const RESUBSCRIBING: RangeInclusive<Duration> = millis(20, 3_000);
/// The same after a refusal, which only an operator can lift.
pub(crate) const AFTER_REFUSAL: RangeInclusive<Duration> = millis(30_000, 30_000);

/// For how long no hint is followed after the Sentinels were asked, and how often they are asked without
/// one. One that hangs holds up no later refresh for longer.
pub(crate) const SENTINEL_REFRESHES: RangeInclusive<Duration> = millis(200, 1_000);
/// For how long no hint is followed after a node was asked who owns the slots, and how often one is
/// asked without a hint.
pub(crate) const CLUSTER_REFRESHES: RangeInclusive<Duration> = millis(100, 2_000);
/// For how long a node is remembered that was only named by a redirection, or was told of as a stranger.
pub(crate) const NODE_REMEMBERED: Duration = Duration::from_secs(60);
/// The pauses before a command is repeated that was redirected again and again.
pub(crate) const REDIRECTS: RangeInclusive<Duration> = millis(4, 200);
