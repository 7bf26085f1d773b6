use std::sync::Arc;

use super::{NameError, text::shown_as_text};

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
    /// [`NameError::Namespace`] when it is empty, too long, or holds a character that is not
    /// allowed.
    pub fn new(namespace: impl AsRef<str>) -> Result<Self, NameError> {
        let namespace = namespace.as_ref();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
        if namespace.is_empty()
            || namespace.len() > Self::MAX_BYTES
            || !namespace.chars().all(allowed)
        {
            return Err(NameError::Namespace { namespace: namespace.into() });
        }
        Ok(Self(namespace.into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_spaces_are_refused() {
        for bad in ["", "{", "a{b}", "a b", "a}", "ä", &"x".repeat(65)] {
            assert!(Namespace::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Namespace::new("team-a:prod/eu").unwrap().as_str(), "team-a:prod/eu");
        assert_eq!(Namespace::default().to_string(), "leasehold");
    }
}
