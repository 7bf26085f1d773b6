use std::sync::Arc;

use super::{Class, Namespace, text::shown_as_text};

/// The name of a lock: 1 to 512 bytes of text, the same in every process that competes for it.
///
/// A name becomes the hash tag of its Redis keys, so it may not begin with `}` (Redis would
/// see an empty tag and scatter the keys of one lock over several slots, see the
/// [cluster
/// specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags)) and may not contain NUL. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Validates a name.
    ///
    /// # Errors
    ///
    /// - [`NameError::Empty`] for no text at all.
    /// - [`NameError::TooLong`] above [`LockName::MAX_BYTES`].
    /// - [`NameError::BreaksHashTag`] when it begins with `}`.
    /// - [`NameError::ContainsNul`] when it contains a NUL character.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        match name {
            "" => Err(NameError::Empty),
            _ if name.len() > Self::MAX_BYTES => Err(NameError::TooLong { bytes: name.len() }),
            _ if name.starts_with('}') => Err(NameError::BreaksHashTag { name: name.into() }),
            _ if name.contains('\0') => Err(NameError::ContainsNul),
            _ => Ok(Self(name.into())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

shown_as_text!(LockName);

/// Why a text cannot name a lock, a class of locks, or a namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name of a lock is empty.
    #[error("a lock name is empty; give it 1 to {} bytes of text", LockName::MAX_BYTES)]
    Empty,
    /// The name of a lock is longer than [`LockName::MAX_BYTES`].
    #[error(
        "a lock name of {bytes} bytes is too long; shorten it to {} bytes, for example by hashing its tail",
        LockName::MAX_BYTES
    )]
    TooLong {
        /// The length that was given.
        bytes: usize,
    },
    /// The name of a lock begins with `}`, which would empty the hash tag of its keys.
    #[error(
        "the lock name {name:?} begins with '}}', which breaks the hash tag of its keys; put another character first"
    )]
    BreaksHashTag {
        /// The name that was given.
        name: String,
    },
    /// The name of a lock contains a NUL character.
    #[error("a lock name contains a NUL character; remove it")]
    ContainsNul,
    /// The text cannot be a [`Class`].
    #[error(
        "the class {class:?} cannot label metrics; use 1 to {} ASCII letters, digits and -_.",
        Class::MAX_BYTES
    )]
    Class {
        /// The text that was given.
        class: String,
    },
    /// The text cannot be a [`Namespace`].
    #[error(
        "the namespace {namespace:?} cannot prefix keys; use 1 to {} ASCII letters, digits and -_.:/ without braces",
        Namespace::MAX_BYTES
    )]
    Namespace {
        /// The text that was given.
        namespace: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_validated_at_the_edge() {
        assert_eq!(LockName::new(""), Err(NameError::Empty));
        assert_eq!(LockName::new("x".repeat(513)), Err(NameError::TooLong { bytes: 513 }));
        assert_eq!(LockName::new("}x"), Err(NameError::BreaksHashTag { name: "}x".into() }));
        assert_eq!(LockName::new("a\0b"), Err(NameError::ContainsNul));
        assert!(LockName::new("x".repeat(512)).is_ok());
        assert_eq!(LockName::new("a}b{c}").unwrap().as_str(), "a}b{c}");
    }
}
