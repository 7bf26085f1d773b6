use std::time::Duration;

use leasehold_core::FencePolicy;

use super::Case;
use crate::{
    Finding,
    Promise::{FencesGrow, OneBeliever},
    Severity, Topic,
};

/// Warns if the server's clock shows another time than ours. No promise compares the two. But if the
/// server's clock is the wrong one, its correction is a step.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, expected, .. } = case;
    let Ok(timing) = &told.timing else { return Vec::new() };
    let off = timing.offset.by().saturating_sub(timing.margin);
    // Clocks that are kept by NTP never differ by so much.
    if off < Duration::from_secs(1) {
        return Vec::new();
    }
    let offset = timing.offset;
    let counts = expected.fencing.policy == FencePolicy::Counter;
    // A watermark that is farther ahead of the server's clock is ignored.
    let watermarks = Duration::from_secs(24 * 60 * 60);
    let most = watermarks.min(expected.fencing.counter_lifetime());
    let (severity, what) = if off >= most && !counts {
        let what = format!(
            "the server's clock is {offset} of this process: if its data is lost, fences may repeat, because processes' watermarks that far from the clock do not count, and counters may have expired"
        );
        (Severity::Danger, what)
    } else {
        let what = format!(
            "the server's clock is {offset} of this process: if it is the wrong one and is set right in one step, leases end early, or fences that come from the clock repeat"
        );
        (Severity::Warning, what)
    };
    let cure = "let NTP slew both clocks, and correct the wrong one";
    vec![Finding::new(severity, Topic::Clock, what, cure).endangers(&[OneBeliever, FencesGrow])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ClockOffset::{self, Ahead, Behind},
        facts::{NotRead, RoundTrips},
        tests::{Scene, healthy, seen},
    };

    fn timing(offset: ClockOffset, margin: u64) -> RoundTrips {
        let margin = Duration::from_millis(margin);
        RoundTrips { median: Duration::from_millis(1), offset, margin }
    }

    #[test]
    fn a_clock_that_is_off_is_told_with_its_offset() {
        use Severity::{Danger, Warning};
        let seconds = Duration::from_secs;
        for (offset, margin, found) in [
            (Ahead(Duration::from_millis(900)), 0, None),
            (Ahead(seconds(2)), 1500, None),
            (Ahead(seconds(2)), 1, Some(Warning)),
            (Behind(seconds(3600)), 1, Some(Warning)),
            (Behind(seconds(90_000)), 1, Some(Danger)),
            (Ahead(seconds(90_000)), 1, Some(Danger)),
        ] {
            let mut told = healthy();
            told.timing = Ok(timing(offset, margin));
            let findings = judge(Scene::of(told).case());
            let expected = found.map(|severity| (severity, Topic::Clock, "P1 P2"));
            assert_eq!(seen(&findings), Vec::from_iter(expected), "{offset} {margin}");
            assert!(findings.iter().all(|one| one.what.contains(&offset.to_string())));
        }
    }

    #[test]
    fn a_counter_that_expires_sooner_makes_it_worse() {
        let mut told = healthy();
        told.timing = Ok(timing(Ahead(Duration::from_secs(7200)), 0));
        let mut scene = Scene::of(told);
        assert_eq!(judge(scene.case())[0].severity, Severity::Warning);
        let fencing = scene.expected.fencing.retention(Duration::from_secs(3600));
        scene.expected.fencing = fencing.unwrap();
        assert_eq!(judge(scene.case())[0].severity, Severity::Danger);
        scene.expected.fencing = scene.expected.fencing.policy(FencePolicy::Counter);
        assert_eq!(judge(scene.case())[0].severity, Severity::Warning);
    }

    #[test]
    fn a_clock_that_was_not_read_is_no_finding_of_this_rule() {
        let mut told = healthy();
        told.timing = Err(NotRead::Silent);
        assert_eq!(judge(Scene::of(told).case()), []);
    }
}
