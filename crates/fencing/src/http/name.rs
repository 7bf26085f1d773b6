use std::{error::Error, future::Future, pin::Pin};

/// A future of the name of the resource that a request writes to; `None` where it needs no fence.
pub type NameFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<String>, Unnamed>> + Send + 'a>>;

/// Why the resource of a request has no name: the request is answered 400, with these words.
///
/// Every error becomes one by `?`, such as that of an extractor. Its words are sent to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnamed(Box<str>);

impl Unnamed {
    /// No more words than this are repeated to the client.
    const MAX_CHARS: usize = 200;

    /// A reason in words of your own; more than 200 characters are cut off.
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
