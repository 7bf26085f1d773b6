use std::ffi::OsString;

use crate::ending::Cause;

/// What `-E` sets: the exit code of one kind of ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode {
    of: Cause,
    code: u8,
}

impl ExitCode {
    /// Reads `KIND=CODE`, or a code alone, which is that of `busy`, as in `flock`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (kind, code) = text.split_once('=').unwrap_or(("busy", text));
        let Some((_, of)) = Cause::NAMED.into_iter().find(|(name, _)| *name == kind) else {
            let kinds = Cause::NAMED.map(|(name, _)| name).join(", ");
            return Err(format!("write CODE or KIND=CODE, with one of the kinds {kinds}"));
        };
        let code = code.parse().map_err(|_| "an exit code is a number from 0 to 255".to_owned())?;
        Ok(Self { of, code })
    }

    /// The exit code of an ending among those that were set; a later one counts.
    pub(crate) fn of(set: &[Self], cause: Cause) -> u8 {
        let last = set.iter().rev().find(|set| set.of == cause);
        last.map_or_else(|| cause.code(), |set| set.code)
    }

    /// The codes that some words set, although the words as a whole are not understood.
    pub(crate) fn among(words: impl IntoIterator<Item = OsString>) -> Vec<Self> {
        let words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
        let (mut words, mut set) = (words.take_while(|word| word != "--"), Vec::new());
        while let Some(word) = words.next() {
            let value = match word.as_str() {
                "-E" | "--exit-code" => words.next(),
                joined => {
                    let value = joined.strip_prefix("--exit-code=");
                    value.or_else(|| joined.strip_prefix("-E")).map(str::to_owned)
                }
            };
            set.extend(value.and_then(|value| Self::read(&value).ok()));
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_alone_is_that_of_busy() {
        let set = ["7", "lost=1", "lost=2", "done=3"].map(|text| ExitCode::read(text).unwrap());
        for (cause, code) in
            [(Cause::Busy, 7), (Cause::Lost, 2), (Cause::Done, 3), (Cause::Usage, 64)]
        {
            assert_eq!(ExitCode::of(&set, cause), code);
        }
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
            assert_eq!(ExitCode::of(&ExitCode::among(words), Cause::Usage), 9);
        }
        let words = ["--", "-E", "usage=9"].map(OsString::from);
        assert_eq!(ExitCode::among(words), []);
    }
}
