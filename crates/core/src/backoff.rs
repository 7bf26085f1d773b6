use std::time::Duration;

/// The pause after `failures` earlier failures in a row: it doubles from `shortest` up to `longest`.
///
/// `fraction`, in `[0, 1)`, spreads the pauses of many callers over the second half of it.
pub fn backoff(shortest: Duration, longest: Duration, failures: u32, fraction: f64) -> Duration {
    let full = shortest.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + fraction.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_the_longest_and_is_spread_over_its_second_half() {
        let millis = Duration::from_millis;
        let pause = |failures, fraction| backoff(millis(20), millis(3000), failures, fraction);
        assert_eq!([0, 1, 2].map(|n| pause(n, 0.0)), [10, 20, 40].map(millis));
        assert_eq!(pause(1, 0.5), millis(30));
        assert_eq!(pause(u32::MAX, 0.0), millis(1500));
        assert!(pause(100, 1.0) <= millis(3000));
    }
}
