/// Median, least and most of some values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Spread {
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
pub(crate) fn shown(value: f64, digits: usize) -> String {
    if value.is_nan() { "–".into() } else { format!("{value:.digits$}") }
}
