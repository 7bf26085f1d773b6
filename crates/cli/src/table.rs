//! Rows in aligned columns.

use std::fmt::Write;

/// Rows under heads, each column as wide as its widest cell, with two spaces between; the last
/// column is not filled up.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    line(&mut text, &widths, heads.iter().copied());
    for row in rows {
        line(&mut text, &widths, row.iter().map(String::as_str));
    }
    text
}

fn line<'a>(text: &mut String, widths: &[usize], cells: impl Iterator<Item = &'a str>) {
    let mut row = String::new();
    for (cell, width) in cells.zip(widths) {
        let _ = write!(row, "{cell:width$}  ");
    }
    text.push_str(row.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["a".into(), "long".into(), "x".into()],
            vec!["bcd".into(), "é".into(), String::new()],
        ];
        assert_eq!(table(&["N", "HOLD", "END"], &rows), "N    HOLD  END\na    long  x\nbcd  é\n");
    }
}
