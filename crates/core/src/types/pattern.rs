use std::{iter::Peekable, str::Chars};

use super::{LockName, NameError, words::shown_as_text};

/// Which names of locks are meant: a glob, of 1 to 512 bytes.
///
/// `*` stands for any text, `?` for one character, `[a-z]` for one of some characters, and `[^a-z]`
/// for any other one. A `\` before a character takes it literally, see [`NamePattern::literal`].
///
/// # Examples
///
/// ```
/// use leasehold::{LockName, NamePattern};
///
/// # fn main() -> Result<(), leasehold::error::NameError> {
/// let orders = NamePattern::new("orders/*")?;
/// assert!(orders.matches(&LockName::new("orders/42")?));
/// assert!(!orders.matches(&LockName::new("order")?));
///
/// let one = NamePattern::literal(&LockName::new("what?")?);
/// assert_eq!(one.as_str(), r"what\?");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    parts: Vec<GlobPart>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobPart {
    /// This character.
    Is(char),
    /// One of these ranges; or none of them, if it is `not`.
    In { not: bool, ranges: Vec<(char, char)> },
    /// Any character.
    Any,
    /// Any text.
    Text,
}

impl NamePattern {
    /// Validates a pattern.
    ///
    /// # Errors
    ///
    /// [`NameError::Pattern`] for an empty text, one that is longer than a name can be, a `[` that
    /// is not closed or encloses nothing, and a `\` at the end.
    pub fn new(pattern: impl AsRef<str>) -> Result<Self, NameError> {
        let text = pattern.as_ref();
        let wrong = |what| NameError::Pattern { pattern: text.into(), what };
        if text.is_empty() {
            return Err(wrong("is empty; write * for all locks"));
        }
        if text.len() > LockName::MAX_BYTES {
            return Err(wrong("is longer than any name; shorten it to 512 bytes"));
        }
        let (mut parts, mut rest) = (Vec::new(), text.chars().peekable());
        while let Some(next) = rest.next() {
            match next {
                // Several in a row mean the same as one.
                '*' if parts.last() == Some(&GlobPart::Text) => {}
                '*' => parts.push(GlobPart::Text),
                '?' => parts.push(GlobPart::Any),
                '[' => parts.push(class(&mut rest).map_err(wrong)?),
                '\\' => parts.push(GlobPart::Is(rest.next().ok_or_else(|| wrong(OPEN_ESCAPE))?)),
                other => parts.push(GlobPart::Is(other)),
            }
        }
        Ok(Self { text: text.into(), parts })
    }

    /// Makes the pattern that only this name matches.
    pub fn literal(name: &LockName) -> Self {
        let mut text = String::new();
        for next in name.as_str().chars() {
            if matches!(next, '*' | '?' | '[' | ']' | '\\') {
                text.push('\\');
            }
            text.push(next);
        }
        Self { text, parts: name.as_str().chars().map(GlobPart::Is).collect() }
    }

    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether a name matches.
    pub fn matches(&self, name: &LockName) -> bool {
        let name: Vec<char> = name.as_str().chars().collect();
        let (mut at, mut part) = (0, 0);
        // Where the last `*` stands, and how far it reaches at present.
        let mut text: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.parts.get(part) {
                Some(GlobPart::Text) => {
                    text = Some((part, at));
                    part += 1;
                }
                Some(one) if one.is(name[at]) => (at, part) = (at + 1, part + 1),
                // Only the last `*` can have to reach further.
                _ => match &mut text {
                    Some((star, reach)) => {
                        *reach += 1;
                        (at, part) = (*reach, *star + 1);
                    }
                    None => return false,
                },
            }
        }
        self.parts[part..].iter().all(|part| *part == GlobPart::Text)
    }

    /// The text with which every name begins that matches, and that with which it ends, if there is
    /// anything between them; a server looks for no more than that.
    pub(crate) fn ends(&self) -> (String, Option<String>) {
        let literal = |part: &GlobPart| match part {
            GlobPart::Is(one) => Some(*one),
            _ => None,
        };
        let begin: String = self.parts.iter().map_while(literal).collect();
        if begin.chars().count() == self.parts.len() {
            return (begin, None);
        }
        let end: Vec<char> = self.parts.iter().rev().map_while(literal).collect();
        (begin, Some(end.into_iter().rev().collect()))
    }
}

impl Default for NamePattern {
    /// All names.
    fn default() -> Self {
        Self { text: "*".into(), parts: vec![GlobPart::Text] }
    }
}

impl AsRef<str> for NamePattern {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

shown_as_text!(NamePattern);

impl GlobPart {
    /// Whether a character is one that the part means; a `*` means none by itself.
    fn is(&self, other: char) -> bool {
        match self {
            Self::Is(one) => *one == other,
            Self::In { not, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&other)) != *not
            }
            Self::Any => true,
            Self::Text => false,
        }
    }
}

const OPEN_CLASS: &str = "has a [ without a ]; close it, or write \\[ for the character";
const OPEN_ESCAPE: &str = "ends with a \\; write \\\\ for the character";

/// Reads what stands behind a `[`, up to its `]`.
fn class(rest: &mut Peekable<Chars<'_>>) -> Result<GlobPart, &'static str> {
    let not = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let from = match rest.next().ok_or(OPEN_CLASS)? {
            ']' if ranges.is_empty() => return Err("has a [ with nothing in it"),
            ']' => return Ok(GlobPart::In { not, ranges }),
            '\\' => rest.next().ok_or(OPEN_ESCAPE)?,
            other => other,
        };
        let mut ahead = rest.clone();
        let to = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                *rest = ahead;
                if to == '\\' { rest.next().ok_or(OPEN_ESCAPE)? } else { to }
            }
            _ => from,
        };
        ranges.push((from.min(to), from.max(to)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamePattern::new(pattern).unwrap().matches(&LockName::new(name).unwrap())
    }

    #[test]
    fn a_glob_matches_as_a_glob_does() {
        for (pattern, name, expected) in [
            ("*", "anything", true),
            ("orders/*", "orders/42", true),
            ("orders/*", "orders/", true),
            ("orders/*", "orders", false),
            ("*/42", "orders/42", true),
            ("*a*b*c", "xxaxxbxxbc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("a?c", "aüc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "äx", true),
            ("[]x", "x", false),
            ("[a-]", "-", true),
            (r"[\]]", "]", true),
            (r"[\[-\]]", r"\", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("a", "ab", false),
            ("**", "a", true),
        ] {
            let Ok(pattern) = NamePattern::new(pattern) else {
                assert!(!expected && pattern == "[]x", "{pattern}");
                continue;
            };
            let name = LockName::new(name).unwrap();
            assert_eq!(pattern.matches(&name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_cannot_be_a_pattern_is_refused() {
        for pattern in ["", "[", "a[b", "[]", "[^]", "a\\", "[a\\", "[a-\\", &"x".repeat(513)] {
            let error = NamePattern::new(pattern).unwrap_err();
            assert!(matches!(error, NameError::Pattern { .. }), "{pattern}: {error}");
        }
    }

    #[test]
    fn a_name_is_a_pattern_of_itself_alone() {
        for name in ["a", "*", "a?[b]\\", "ü]*"] {
            let name = LockName::new(name).unwrap();
            let literal = NamePattern::literal(&name);
            assert!(literal.matches(&name) && matches(literal.as_str(), name.as_str()));
            assert!(!literal.matches(&LockName::new("ab").unwrap()));
            assert_eq!(NamePattern::new(literal.as_str()).unwrap(), literal);
        }
    }

    #[test]
    fn a_long_run_of_stars_takes_no_longer_than_the_product_of_the_lengths() {
        let pattern = "*a".repeat(200);
        assert!(!matches(&format!("{pattern}b"), &"a".repeat(500)));
    }

    #[test]
    fn a_server_looks_for_the_ends_alone() {
        let ends = |pattern: &str| NamePattern::new(pattern).unwrap().ends();
        assert_eq!(ends("orders/*"), ("orders/".into(), Some(String::new())));
        assert_eq!(ends("a?b*c"), ("a".into(), Some("c".into())));
        assert_eq!(ends(r"a\*b"), ("a*b".into(), None));
        assert_eq!(ends("[ab]c"), (String::new(), Some("c".into())));
        assert_eq!(ends("*"), (String::new(), Some(String::new())));
    }
}
