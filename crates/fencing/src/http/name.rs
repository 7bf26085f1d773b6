use std::{error::Error, future::Future, pin::Pin};

/// The future of the name of the resource that a request writes to; `None` if the request needs no
/// fence.
pub type NameFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<String>, Unnamed>> + Send + 'a>>;

/// Why the resource of a request has no name: the answer is 400, with this reason.
///
/// `?` converts every error to this type, such as that of an extractor. Its text is sent to the
/// client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnamed(Box<str>);

impl Unnamed {
    /// The longest reason that is sent to the client.
    const MAX_CHARS: usize = 200;

    /// A reason of your own; text after 200 characters is cut off.
    pub fn because(reason: &str) -> Self {
        Self(reason.chars().take(Self::MAX_CHARS).collect())
    }

    pub(super) fn reason(&self) -> &str {
        &self.0
    }
}

impl<E: Error> From<E> for Unnamed {
    fn from(error: E) -> Self {
        Self::because(&error.to_string())
    }
}
