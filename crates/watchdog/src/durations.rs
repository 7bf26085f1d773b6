//! The durations of the watchdog that are no settings.

use std::time::Duration;

/// How often gauges are shown, an outage is logged, and a silent server is asked.
pub(crate) const TICK: Duration = Duration::from_secs(5);
/// When to look again at a turn that nobody holds, or whose holder is releasing it.
pub(crate) const LATER: Duration = Duration::from_secs(1);
/// How far ahead of its time a renewal may be sent in a command that is sent anyway.
pub(crate) const EARLY: Duration = Duration::from_millis(300);
/// Within this time a turn is renewed that lives for less than its ttl: shorter holds cost nothing.
// ADR 0006
pub(crate) const SOON: Duration = Duration::from_millis(100);
