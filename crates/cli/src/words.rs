//! Texts for people.

use std::time::Duration;

/// What a text that came from elsewhere shows of itself in a line: no control characters, which could
/// move the cursor or end the line, and none that turn the direction of what stands behind them.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_layout(c) { '\u{fffd}' } else { c }).collect()
}

/// Marks of Unicode that end a line, or change the direction of a text.
fn is_layout(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A time in at most two units: `350ms`, `4.2s`, `3m 20s`, `2h 5m`, `3d 4h`.
pub(crate) fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..10 => format!("{}.{}s", seconds, time.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (9_999, "9.9s"),
            (10_000, "10s"),
            (200_000, "3m 20s"),
            (7_500_000, "2h 5m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn what_others_wrote_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(printable("a\u{202e}b\u{2028}é"), "a\u{fffd}b\u{fffd}é");
    }
}
