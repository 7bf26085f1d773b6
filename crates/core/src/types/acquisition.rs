use std::{fmt, str::FromStr};

use uuid::{Uuid, fmt::Hyphenated};

/// The identity of one runtime in one process, never shared and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuntimeId(Uuid);

impl RuntimeId {
    /// Makes an identity of a random UUID; [`Entropy`](crate::Entropy) draws it.
    pub fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID beneath.
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of one acquisition, `<runtime-uuid>:<number>`, never used again.
///
/// Redis scripts match a lease by this id *and* its fence, so that a late command of one
/// acquisition cannot touch another, even of the same owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AcquisitionId {
    runtime: RuntimeId,
    number: u64,
}

impl AcquisitionId {
    /// Joins a runtime's identity with a number that this runtime has not used before.
    pub fn new(runtime: RuntimeId, number: u64) -> Self {
        Self { runtime, number }
    }

    /// The runtime that made this acquisition.
    pub fn runtime(&self) -> RuntimeId {
        self.runtime
    }

    /// Appends the id as text; faster than by a formatter.
    pub(crate) fn write_text(self, to: &mut String) {
        to.push_str(self.runtime.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        to.push(':');
        to.push_str(&self.number.to_string());
    }

    /// The number within the runtime.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Display for AcquisitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.runtime, self.number)
    }
}

impl FromStr for AcquisitionId {
    type Err = AcquisitionIdError;

    /// Reads what [`Display`](fmt::Display) writes and nothing else: lower case, with hyphens, and
    /// a number without a sign or leading zeros. Two texts are never one id.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || AcquisitionIdError { text: text.into() };
        let (runtime, number) = text.split_once(':').ok_or_else(error)?;
        let is_plain = runtime.len() == Hyphenated::LENGTH
            && !runtime.bytes().any(|byte| byte.is_ascii_uppercase())
            && (number == "0" || number.starts_with(|first| matches!(first, '1'..='9')));
        if !is_plain {
            return Err(error());
        }
        let runtime = Uuid::try_parse(runtime).map_err(|_| error())?;
        let number = number.parse().map_err(|_| error())?;
        Ok(Self::new(RuntimeId(runtime), number))
    }
}

/// A text that is not `<runtime-uuid>:<number>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an acquisition id; expected <runtime-uuid>:<number>")]
pub struct AcquisitionIdError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_what_it_writes() {
        let id = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), 42);
        assert_eq!(id.to_string(), "00000000-0000-0000-0000-000000000007:42");
        assert_eq!(id.to_string().parse(), Ok(id));
        let mut text = String::new();
        id.write_text(&mut text);
        assert_eq!(text, id.to_string());
        let runtime = "abcdef00-0000-0000-0000-000000000007";
        assert!(format!("{runtime}:0").parse::<AcquisitionId>().is_ok());
        for number in ["+42", "042", "-1", "", " 42", "00"] {
            assert!(format!("{runtime}:{number}").parse::<AcquisitionId>().is_err(), "{number}");
        }
        for runtime in [runtime.to_uppercase(), runtime.replace('-', ""), format!("{{{runtime}}}")]
        {
            assert!(format!("{runtime}:42").parse::<AcquisitionId>().is_err(), "{runtime}");
        }
        assert!("7:42".parse::<AcquisitionId>().is_err());
        assert!("00000000-0000-0000-0000-000000000007".parse::<AcquisitionId>().is_err());
    }
}
