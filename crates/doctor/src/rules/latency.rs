use super::Case;
use crate::{
    Finding,
    Promise::{ACallEnds, FirstComeFirstServed, LossIsTold},
    Severity, Topic,
};

/// How many round trips fit into the time of a command at least: for a server that is busy now and
/// then, and for a connection that is made.
const TRIPS_OF_A_COMMAND: u32 = 4;

/// How many round trips fit into a claim window at least.
const TRIPS_OF_A_WINDOW: u32 = 5;

/// Whether the server answers fast enough for the times that were set.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, expected, .. } = case;
    let Ok(timing) = &told.timing else { return Vec::new() };
    let trip = timing.median;
    // A renewal has so long for its answer.
    let renewal = expected.ttl.get() / 6;
    let command = expected.command_timeout.min(expected.ttl.get() / 2);
    let (name, least) = if renewal < command {
        ("a renewal, a sixth of the ttl", renewal)
    } else {
        ("a command", command)
    };
    let find = |severity, what| {
        let cure = "run the process nearer to its server, or raise ttl(), command_timeout() and claim_window()";
        let promises = [LossIsTold, FirstComeFirstServed, ACallEnds];
        vec![Finding::new(severity, Topic::Latency, what, cure).endangers(&promises)]
    };
    if trip >= least {
        let what = format!(
            "a round trip takes {trip:.1?}, and the time of {name}, is {least:?}: leases are lost, and calls fail"
        );
        return find(Severity::Danger, what);
    }
    if trip * TRIPS_OF_A_COMMAND > least {
        let what = format!(
            "a round trip takes {trip:.1?}, and the time of {name}, is {least:?}: little is left for a busy server"
        );
        return find(Severity::Warning, what);
    }
    let window = expected.claim_window.min(expected.ttl.get());
    if trip * TRIPS_OF_A_WINDOW > window {
        let what = format!(
            "a round trip takes {trip:.1?}, and the claim window is {window:?}: waiters may lose their places and grants"
        );
        return find(Severity::Warning, what);
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::Ttl;

    use super::*;
    use crate::{
        ClockOffset,
        facts::RoundTrips,
        tests::{Scene, healthy, seen},
    };

    #[test]
    fn a_round_trip_is_compared_with_the_times_that_were_set() {
        use Severity::{Danger, Warning};
        let millis = Duration::from_millis;
        for (trip, ttl, command, window, found) in [
            (1, 30_000, 2000, 3000, None),
            (499, 30_000, 2000, 3000, None),
            (501, 30_000, 2000, 3000, Some(Warning)),
            (2000, 30_000, 2000, 3000, Some(Danger)),
            (110, 3000, 1500, 3000, None),
            (130, 3000, 1500, 3000, Some(Warning)),
            (500, 3000, 1500, 3000, Some(Danger)),
            (70, 30_000, 2000, 300, Some(Warning)),
        ] {
            let mut told = healthy();
            let offset = ClockOffset::Ahead(Duration::ZERO);
            told.timing = Ok(RoundTrips { median: millis(trip), offset, margin: millis(trip) / 2 });
            let mut scene = Scene::of(told);
            scene.expected.ttl = Ttl::new(millis(ttl)).unwrap();
            scene.expected.command_timeout = millis(command);
            scene.expected.claim_window = millis(window);
            let expected = found.map(|severity| (severity, Topic::Latency, "P5 P7 P10"));
            assert_eq!(seen(&judge(scene.case())), Vec::from_iter(expected), "{trip} ms");
        }
    }
}
