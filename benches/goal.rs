/// A bound on the good side of which a value is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    /// The bound, and whether a value has reached it.
    pub(crate) fn verdict(self, value: f64) -> String {
        let (sign, bound, is_reached) = match self {
            Self::AtLeast(bound) => ('≥', bound, value >= bound),
            Self::AtMost(bound) => ('≤', bound, value <= bound),
        };
        let verdict = if is_reached { "reached" } else { "MISSED" };
        format!("{sign} {bound:<7}{verdict}")
    }
}
