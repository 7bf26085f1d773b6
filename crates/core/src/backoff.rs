use std::{ops::RangeInclusive, time::Duration};

use ::backoff::{BackoffBuilder, ExponentialBuilder};

/// The pause after `failures` earlier failures in a row: it doubles from the start of `pauses` up
/// to their end.
///
/// `fraction`, in `[0, 1)`, spreads the pauses of many callers over the second half of it.
pub fn backoff(pauses: RangeInclusive<Duration>, failures: u32, fraction: f64) -> Duration {
    let (shortest, longest) = pauses.into_inner();
    let pauses = ExponentialBuilder::default()
        .with_min_delay(shortest)
        .with_max_delay(longest)
        .with_factor(2.0)
        .without_max_times();
    // So many doublings lead from the shortest pause of all to the longest.
    let failures = failures.min(64) as usize;
    let full = pauses.build().nth(failures).unwrap_or(longest);
    full.mul_f64(0.5 + fraction.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_the_longest_and_is_spread_over_its_second_half() {
        let millis = Duration::from_millis;
        let pause = |failures, fraction| backoff(millis(20)..=millis(3000), failures, fraction);
        // Steps are rounded to some nanoseconds.
        let whole = |pause: Duration| (pause + Duration::from_micros(1)).as_millis();
        assert_eq!([0, 1, 2].map(|n| whole(pause(n, 0.0))), [10, 20, 40]);
        assert_eq!(whole(pause(1, 0.5)), 30);
        assert_eq!(pause(u32::MAX, 0.0), millis(1500));
        assert!(pause(100, 1.0) <= millis(3000));
    }
}
