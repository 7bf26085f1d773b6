//! The short texts that users choose: classes, namespaces and labels.

use std::sync::{Arc, LazyLock};

use super::{NameError, is_printable};

/// Shows a type that is a text as that text; quoted in `Debug`.
macro_rules! shown_as_text {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

pub(super) use shown_as_text;

/// A text of 1 to `longest` bytes: ASCII letters, digits and `marks`; `None` for any other.
fn plain(text: &str, longest: usize, marks: &str) -> Option<Arc<str>> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    let is_plain = (1..=longest).contains(&text.len()) && text.chars().all(allowed);
    is_plain.then(|| text.into())
}

/// A bounded label for metrics, chosen by the user: what kind of lock, never which one.
///
/// 1 to 64 bytes of ASCII letters, digits and `-_.`. Locks without one are of the class `default`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(Arc<str>);

impl Class {
    /// The longest class, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Validates a class.
    ///
    /// # Errors
    ///
    /// [`NameError::Class`] when it is empty, too long, or holds a character that is not allowed.
    pub fn new(class: impl AsRef<str>) -> Result<Self, NameError> {
        let class = class.as_ref();
        let plain = plain(class, Self::MAX_BYTES, "-_.");
        plain.map(Self).ok_or_else(|| NameError::Class { class: class.into() })
    }

    /// The class that counts all locks beyond the greatest number of classes.
    pub(crate) fn other() -> Self {
        Self("other".into())
    }

    /// The class as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Class {
    fn default() -> Self {
        // Each lock asks for it when it is made.
        static DEFAULT: LazyLock<Class> = LazyLock::new(|| Class("default".into()));
        DEFAULT.clone()
    }
}

shown_as_text!(Class);

/// The prefix of every key and channel, so that several systems can share one Redis.
///
/// 1 to 64 bytes of ASCII letters, digits and `-_.:/`; no braces, because the first brace of a
/// key begins its hash tag. The default is `leasehold`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// The longest namespace, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Validates a namespace.
    ///
    /// # Errors
    ///
    /// [`NameError::Namespace`] when it is empty, too long, or holds another character.
    pub fn new(namespace: impl AsRef<str>) -> Result<Self, NameError> {
        let namespace = namespace.as_ref();
        let plain = plain(namespace, Self::MAX_BYTES, "-_.:/");
        plain.map(Self).ok_or_else(|| NameError::Namespace { namespace: namespace.into() })
    }

    /// The namespace as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("leasehold".into())
    }
}

shown_as_text!(Namespace);

/// A readable label of a runtime, kept with every lease so that an operator can see who holds it.
///
/// Usually `host/pid/service`. Characters that cannot be shown and a `~` at the beginning are replaced, and the
/// text is cut at [`RuntimeLabel::MAX_BYTES`]: a label informs people and never decides anything.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RuntimeLabel(Arc<str>);

impl RuntimeLabel {
    /// The longest label, in bytes; longer ones are cut at a character boundary.
    pub const MAX_BYTES: usize = 200;

    /// The mark that Redis has before the label of a runtime that may keep its lock idle.
    #[doc(hidden)]
    pub const KEEPS: char = '~';

    /// Makes a label of any text.
    pub fn new(text: impl AsRef<str>) -> Self {
        let mut label = String::new();
        for c in text.as_ref().chars() {
            let is_mark = label.is_empty() && c == Self::KEEPS;
            let c = if !is_printable(c) || is_mark { '\u{fffd}' } else { c };
            if label.len() + c.len_utf8() > Self::MAX_BYTES {
                break;
            }
            label.push(c);
        }
        Self(label.into())
    }

    /// The label that this process gives itself: host, process id and service.
    pub fn of_process(service: &str) -> Self {
        Self::new(format!("{}/{}/{service}", host(), std::process::id()))
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

shown_as_text!(RuntimeLabel);

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown-host".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_plain_bounded_word() {
        assert_eq!(Class::default().as_str(), "default");
        assert!(Class::new("order-lines.v2").is_ok());
        for bad in ["", "orders/42", "a b", &"x".repeat(65)] {
            assert!(Class::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn braces_and_spaces_are_refused() {
        for bad in ["", "{", "a{b}", "a b", "a}", "ä", &"x".repeat(65)] {
            assert!(Namespace::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Namespace::new("team-a:prod/eu").unwrap().as_str(), "team-a:prod/eu");
        assert_eq!(Namespace::default().to_string(), "leasehold");
    }

    #[test]
    fn a_label_is_bounded_and_printable() {
        assert_eq!(RuntimeLabel::new("a\nb").as_str(), "a\u{fffd}b");
        assert_eq!(RuntimeLabel::new("ä".repeat(150)).as_str().len(), 200);
        assert_eq!(RuntimeLabel::new("~~a~b").as_str(), "\u{fffd}~a~b");
        let label = RuntimeLabel::of_process("billing");
        assert!(label.as_str().ends_with(&format!("/{}/billing", std::process::id())));
    }
}
