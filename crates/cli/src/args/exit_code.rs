use std::ffi::OsString;

use crate::ending::ExitCodes;

/// What `-E` sets: the exit code of one kind of ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode {
    of: Of,
    code: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Usage,
    Unreachable,
    Busy,
    Lost,
    Unended,
    Config,
    Done,
}

const KINDS: [(&str, Of); 7] = [
    ("busy", Of::Busy),
    ("lost", Of::Lost),
    ("unended", Of::Unended),
    ("unreachable", Of::Unreachable),
    ("config", Of::Config),
    ("usage", Of::Usage),
    ("done", Of::Done),
];

impl ExitCode {
    /// Reads `KIND=CODE`, or a code alone, which is that of `busy`, as in `flock`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (kind, code) = text.split_once('=').unwrap_or(("busy", text));
        let of = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, of)| *of);
        let kinds: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
        let of = of.ok_or_else(|| {
            format!("write CODE or KIND=CODE, with one of the kinds {}", kinds.join(", "))
        })?;
        let code = code.parse().map_err(|_| "an exit code is a number from 0 to 255".to_owned())?;
        Ok(Self { of, code })
    }

    /// The codes with those that were set; a later one counts.
    pub(crate) fn all(set: &[Self]) -> ExitCodes {
        let mut codes = ExitCodes::default();
        for Self { of, code } in set {
            *match of {
                Of::Usage => &mut codes.usage,
                Of::Unreachable => &mut codes.unreachable,
                Of::Busy => &mut codes.busy,
                Of::Lost => &mut codes.lost,
                Of::Unended => &mut codes.unended,
                Of::Config => &mut codes.config,
                Of::Done => &mut codes.done,
            } = *code;
        }
        codes
    }

    /// The codes that some words set, although the words as a whole are not understood.
    pub(super) fn among(words: impl IntoIterator<Item = OsString>) -> ExitCodes {
        let (mut set, mut is_next) = (Vec::new(), false);
        for word in words {
            let Some(word) = word.to_str() else { continue };
            if word == "--" {
                break;
            }
            let value = match word.strip_prefix("--exit-code=").or_else(|| word.strip_prefix("-E"))
            {
                _ if is_next => Some(word),
                Some(value) if !value.is_empty() => Some(value),
                _ => None,
            };
            is_next = !is_next && matches!(word, "-E" | "--exit-code");
            set.extend(value.and_then(|value| Self::read(value).ok()));
        }
        Self::all(&set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_alone_is_that_of_busy() {
        let set = ["7", "lost=1", "lost=2", "done=3"].map(|text| ExitCode::read(text).unwrap());
        let expected = ExitCodes { busy: 7, lost: 2, done: 3, ..ExitCodes::default() };
        assert_eq!(ExitCode::all(&set), expected);
        for bad in ["", "256", "-1", "x=1", "busy=", "busy"] {
            assert!(ExitCode::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn codes_are_found_among_words_that_are_not_understood() {
        for words in
            ["-E usage=9 --foo", "--exit-code=usage=9", "-Eusage=9", "-E 3 --exit-code usage=9"]
        {
            let words = words.split(' ').map(OsString::from);
            assert_eq!(ExitCode::among(words).usage, 9);
        }
        let words = ["--", "-E", "usage=9"].map(OsString::from);
        assert_eq!(ExitCode::among(words), ExitCodes::default());
    }
}
