use std::{
    fmt::Debug,
    ops::{Bound, RangeBounds},
};

/// A setting that is out of range: which one, the value that was given, and the range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {setting} of {given} is out of range; choose {range}")]
pub struct SettingError {
    setting: &'static str,
    given: String,
    range: String,
}

impl SettingError {
    /// Checks that a value is in its range; `setting` is its name in words.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when the value is out of range.
    pub fn check<T: PartialOrd + Debug>(
        setting: &'static str,
        value: T,
        range: impl RangeBounds<T>,
    ) -> Result<T, Self> {
        if range.contains(&value) {
            return Ok(value);
        }
        let range = match (range.start_bound(), range.end_bound()) {
            (Bound::Included(min), Bound::Included(max)) => {
                format!("one between {min:?} and {max:?}")
            }
            (Bound::Included(min), Bound::Unbounded) => format!("at least {min:?}"),
            (min, max) => format!("one from {min:?} to {max:?}"),
        };
        Err(Self { setting, given: format!("{value:?}"), range })
    }

    /// The name of the setting.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}
