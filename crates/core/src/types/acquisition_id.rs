use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    num::NonZeroU64,
    str::FromStr,
};

use uuid::{Uuid, fmt::Hyphenated};

use super::printable::beginning;

/// The identity of one runtime in one process, never shared and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuntimeId(Uuid);

impl RuntimeId {
    /// Makes an identity of a random UUID; [`Entropy`](crate::Entropy) draws it.
    pub fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns the UUID beneath.
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
///
/// A store keeps the id of an acquisition with a *word*, `<runtime-uuid>:<number>-<word>`. Nobody can
/// guess the word, so a message that has it comes from somebody who has seen it in the store. The
/// word is a secret and no part of the identity: ids are equal without it, and neither `Display` nor
/// `Debug` shows it. The id of a lease, which storages and logs have, is without one.
#[derive(Clone, Copy)]
pub struct AcquisitionId {
    runtime: RuntimeId,
    number: u64,
    word: Option<NonZeroU64>,
}

impl AcquisitionId {
    /// How many digits a word has.
    const WORD: usize = 16;

    /// Joins a runtime's identity with a number that this runtime has not used before.
    pub fn new(runtime: RuntimeId, number: u64) -> Self {
        Self { runtime, number, word: None }
    }

    /// The same id with its word; [`Secret`](crate::Secret) makes it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_word(self, word: NonZeroU64) -> Self {
        Self { word: Some(word), ..self }
    }

    /// The word by which the id proves itself, if it is known.
    #[doc(hidden)]
    pub fn word(&self) -> Option<NonZeroU64> {
        self.word
    }

    /// The id as stores keep it, with its word: not for logs.
    #[doc(hidden)]
    pub fn to_stored(&self) -> String {
        let mut text = String::new();
        self.write_stored(&mut text);
        text
    }

    /// Reads what [`to_stored`](Self::to_stored) writes, and nothing else.
    #[doc(hidden)]
    pub fn of_stored(text: &str) -> Option<Self> {
        let (_, number) = text.split_once(':')?;
        let Some((_, word)) = number.split_once('-') else { return text.parse().ok() };
        let id: Self = text.strip_suffix(word)?.strip_suffix('-')?.parse().ok()?;
        let is_plain = word.len() == Self::WORD && word.bytes().all(is_hex_digit);
        let word = is_plain.then(|| u64::from_str_radix(word, 16).ok()).flatten()?;
        NonZeroU64::new(word).map(|word| id.with_word(word))
    }

    fn identity(&self) -> (RuntimeId, u64) {
        (self.runtime, self.number)
    }

    /// Returns the runtime that made this acquisition.
    pub fn runtime(&self) -> RuntimeId {
        self.runtime
    }

    /// Appends the id as stores keep it; faster than by a formatter.
    #[doc(hidden)]
    pub fn write_stored(self, to: &mut String) {
        to.push_str(self.runtime.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        to.push(':');
        to.push_str(&self.number.to_string());
        let Some(word) = self.word else { return };
        to.push('-');
        let (word, mut digits) = (Uuid::from_u64_pair(word.get(), 0), Uuid::encode_buffer());
        to.push_str(&word.as_simple().encode_lower(&mut digits)[..Self::WORD]);
    }

    /// Returns the number within the runtime.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl PartialEq for AcquisitionId {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for AcquisitionId {}

impl Hash for AcquisitionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialOrd for AcquisitionId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AcquisitionId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl fmt::Display for AcquisitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.runtime, self.number)
    }
}

/// Without the word, which is a secret.
impl fmt::Debug for AcquisitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AcquisitionId({self})")
    }
}

impl FromStr for AcquisitionId {
    type Err = AcquisitionIdError;

    /// Reads what [`Display`](fmt::Display) writes and nothing else: lower case, with hyphens, and
    /// a number without a sign or leading zeros. Two texts are never one id.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || AcquisitionIdError { text: beginning(text) };
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

fn is_hex_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// A text without the words of the acquisitions in it, for errors and logs.
pub fn without_words(text: &str) -> String {
    let mut parts = text.split('-');
    let mut shown = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(|byte| is_hex_digit(*byte)).count();
        let is_behind_number = shown.ends_with(|last: char| last.is_ascii_digit());
        let is_word = is_behind_number && digits == AcquisitionId::WORD;
        shown.push_str(if is_word { "-…" } else { "-" });
        shown.push_str(if is_word { &part[digits..] } else { part });
    }
    shown
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
    fn only_a_store_sees_the_word_of_an_id() {
        let plain = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), 42);
        let id = plain.with_word(NonZeroU64::new(0xabc).unwrap());
        assert_eq!(id.to_stored(), "00000000-0000-0000-0000-000000000007:42-0000000000000abc");
        for text in [id.to_string(), format!("{id:?}"), format!("{:?}", Some(id))] {
            assert!(!text.contains("abc") && text.contains(":42"), "{text}");
        }
        assert_eq!(id, plain, "the word is no part of the identity");
        let read = AcquisitionId::of_stored(&id.to_stored()).unwrap();
        assert_eq!((read, read.word()), (id, id.word()));
        assert!(id.to_stored().parse::<AcquisitionId>().is_err(), "a stamp has no word");
        for wrong in [
            " ",
            "-",
            "-abc",
            "-0000000000000000",
            "-0000000000000ABC",
            "-+000000000000abc",
            "-00000000000000abc",
            "-0000000000000abc ",
        ] {
            assert_eq!(AcquisitionId::of_stored(&format!("{plain}{wrong}")), None, "{wrong}");
        }
        let shown = without_words(&format!("held {} by a-b", id.to_stored()));
        assert_eq!(shown, format!("held {plain}-… by a-b"));
    }

    #[test]
    fn an_id_reads_back_what_it_writes() {
        let id = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), 42);
        assert_eq!(id.to_string(), "00000000-0000-0000-0000-000000000007:42");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_stored(), id.to_string());
        assert_eq!(AcquisitionId::of_stored(&id.to_stored()), Some(id));
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
