use std::{fmt, num::NonZeroU64, str::FromStr};

use super::printable::beginning;

/// A number that grows with every grant of a name; the storage refuses lower ones.
///
/// Between 1 and 2^53 − 1, so that it survives Lua numbers, JSON, JavaScript and `BIGINT`
/// unharmed. By default it is derived from the server's clock in microseconds, hence its 16
/// digits (see `docs/guarantees.md`). Re-entering a lease keeps its token.
///
/// # Examples
///
/// ```
/// use leasehold::Fence;
///
/// let older = Fence::try_from(41_i64)?;
/// let newer: Fence = "42".parse()?;
/// assert!(older < newer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u64", into = "u64"))]
pub struct Fence(NonZeroU64);

impl Fence {
    /// The greatest token, 2^53 − 1.
    pub const MAX: u64 = (1 << 53) - 1;

    /// Returns the token as a number.
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// The token that lies `distance` above, or the greatest one.
    pub(crate) fn above(self, distance: u32) -> Self {
        let above = self.get() + u64::from(distance);
        Self::try_from(above).unwrap_or(Self(const { NonZeroU64::new(Self::MAX).unwrap() }))
    }
}

impl TryFrom<u64> for Fence {
    type Error = FenceError;

    fn try_from(value: u64) -> Result<Self, Self::Error> {
        match NonZeroU64::new(value) {
            Some(token) if value <= Self::MAX => Ok(Self(token)),
            _ => Err(FenceError { value: value.to_string() }),
        }
    }
}

impl TryFrom<i64> for Fence {
    type Error = FenceError;

    fn try_from(value: i64) -> Result<Self, Self::Error> {
        let error = |_| FenceError { value: value.to_string() };
        u64::try_from(value).map_err(error).and_then(Self::try_from)
    }
}

impl FromStr for Fence {
    type Err = FenceError;

    /// Reads what [`Display`](fmt::Display) writes: digits without a sign or leading zeros.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || FenceError { value: beginning(text) };
        if !text.starts_with(|first| matches!(first, '1'..='9')) {
            return Err(error());
        }
        text.parse::<u64>().map_err(|_| error()).and_then(Self::try_from)
    }
}

impl From<Fence> for u64 {
    fn from(token: Fence) -> Self {
        token.get()
    }
}

impl From<Fence> for i64 {
    fn from(token: Fence) -> Self {
        // Never out of range: a token is at most 2^53 - 1.
        token.get().cast_signed()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value that is not a fence token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value} is not a fence token; tokens lie between 1 and {}", Fence::MAX)]
pub struct FenceError {
    value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_within_what_storages_can_hold() {
        assert!(Fence::try_from(0_u64).is_err());
        assert!(Fence::try_from(-1_i64).is_err());
        assert!(Fence::try_from(Fence::MAX + 1).is_err());
        assert!("12a".parse::<Fence>().is_err());
        let greatest = Fence::try_from(Fence::MAX).unwrap();
        assert_eq!(i64::from(greatest), 9_007_199_254_740_991);
        assert_eq!(greatest.to_string(), "9007199254740991");
        assert_eq!(greatest.to_string().parse(), Ok(greatest));
    }
}
