//! Texts for people: times, and rows in aligned columns.

use std::time::Duration;

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

/// Rows under heads, each column as wide as its widest cell, with two spaces between; the last
/// column is not filled up.
pub(crate) fn table<const COLUMNS: usize>(
    heads: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(rows);
    let mut widths = [0; COLUMNS];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in lines {
        let cells: Vec<_> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
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
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "long", "x"], ["bcd", "é", ""]].map(|row| row.map(str::to_owned));
        let text = table(["N", "HOLD", "END"], rows.into_iter());
        assert_eq!(text, "N    HOLD  END\na    long  x\nbcd  é\n");
    }
}
