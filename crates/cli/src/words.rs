//! Texts for people: times, rows in aligned columns, and what fits into a terminal.

use std::time::Duration;

use ratatui::text::Line;

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

/// How many columns of a terminal a text takes.
pub(crate) fn columns(text: &str) -> usize {
    Line::raw(text).width()
}

/// A text in so many columns at most: of one that is too long, the middle is left out.
pub(crate) fn middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let head = fitting(text.chars(), room - room / 2);
    let tail = fitting(text.chars().rev(), room / 2);
    head.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// The first characters that fit into so many columns.
fn fitting(characters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    let fits = |character: &char| {
        used += columns(character.encode_utf8(&mut [0; 4]));
        used <= room
    };
    characters.take_while(fits).collect()
}

/// Parts in lines of so many columns, with a gap between those of a line.
pub(crate) fn lines<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    gap: &str,
    width: usize,
) -> Vec<String> {
    let mut lines = Vec::<String>::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if columns(line) + columns(gap) + columns(part) <= width => {
                line.push_str(gap);
                line.push_str(part);
            }
            _ => lines.push(middle(part, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shortened_in_the_middle() {
        for (text, width, told) in [
            ("orders/42", 9, "orders/42"),
            ("orders/42", 8, "orde…/42"),
            ("orders/42", 1, "…"),
            ("orders/42", 0, ""),
            ("鎖鎖鎖鎖", 6, "鎖…鎖"),
        ] {
            let short = middle(text, width);
            assert_eq!(short, told);
            assert!(columns(&short) <= width, "{short}");
        }
    }

    #[test]
    fn parts_stand_in_as_few_lines_as_they_fit_into() {
        let parts = ["w wanted", "q quit", "a very long part"];
        assert_eq!(lines(parts, "  ", 40), ["w wanted  q quit  a very long part"]);
        assert_eq!(lines(parts, "  ", 16), ["w wanted  q quit", "a very long part"]);
        assert_eq!(lines(parts, "  ", 8), ["w wanted", "q quit", "a ve…art"]);
    }

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
