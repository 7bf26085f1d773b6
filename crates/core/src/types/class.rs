use std::sync::{Arc, LazyLock};

use super::{NameError, text::shown_as_text};

/// A bounded label for metrics, chosen by the user: what kind of lock, never which one.
///
/// 1 to 64 bytes of ASCII letters, digits and `-_.`. Locks without one are of the class
/// `default`.
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
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if class.is_empty() || class.len() > Self::MAX_BYTES || !class.chars().all(allowed) {
            return Err(NameError::Class { class: class.into() });
        }
        Ok(Self(class.into()))
    }

    /// The class that counts all locks beyond the greatest number of classes.
    pub(crate) fn other() -> Self {
        Self("other".into())
    }

    /// The class as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The class as shared text, for metric labels.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
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
}
