//! Figures of several rounds, and how tables show them.

/// Median, least and most of some values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    /// Those of the values that are numbers.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(values.len() / 2),
            least: at(0),
            most: at(values.len().saturating_sub(1)),
        }
    }

    /// All three, with so many digits after the point.
    pub(crate) fn shown(&self, digits: usize) -> String {
        if self.median.is_nan() {
            return "–".into();
        }
        format!("{:.digits$} ({:.digits$}..{:.digits$})", self.median, self.least, self.most)
    }
}

/// A value with so many digits after the point, unless there is none.
pub(crate) fn shown(value: impl Into<Option<f64>>, digits: usize) -> String {
    let value = value.into().filter(|value| !value.is_nan());
    value.map_or_else(|| "–".into(), |value| format!("{value:.digits$}"))
}

/// Texts in columns of a width.
pub(crate) fn cells(width: usize, texts: impl Iterator<Item = String>) -> String {
    texts.fold(String::new(), |line, text| format!("{line}{text:>width$}"))
}

/// What a machine calls a column with this head.
pub(crate) fn key(head: &str) -> String {
    head.replace([' ', '/'], "_").replace('µ', "u").to_lowercase()
}
