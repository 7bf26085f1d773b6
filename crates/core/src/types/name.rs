use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState},
    sync::{Arc, LazyLock},
};

use super::{Class, Namespace, words::shown_as_text};

/// The name of a lock: 1 to 512 bytes of text, the same in every process that competes for it.
///
/// A name becomes the hash tag of its Redis keys, so it may not begin with `}` (Redis would see an
/// empty tag and scatter the keys of one lock over several slots, see the [cluster
/// specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags))
/// and may not contain NUL. Cloning is cheap.
#[derive(Clone)]
// ADR 0018
pub struct LockName {
    hash: u64,
    text: Arc<str>,
}

/// A map by the names of locks, which hash a name once and for all.
pub type NameMap<T> = HashMap<LockName, T, BuildHasherDefault<KnownHash>>;

/// The hash that a [`LockName`] brings along.
#[derive(Debug, Default)]
pub struct KnownHash(u64);

/// The key of the hashes of this process: names from outside must not collide on purpose.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

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
            _ => Ok(Self { hash: HASHES.hash_one(name), text: name.into() }),
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// One of `shards` parts of a table, by bits of the hash that a [`NameMap`] hardly uses.
    #[doc(hidden)]
    pub fn shard(&self, shards: usize) -> usize {
        usize::try_from(self.hash >> 32).unwrap_or(0) % shards
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for LockName {
    fn eq(&self, other: &Self) -> bool {
        // As a rule it is a clone, and otherwise the hashes differ.
        self.hash == other.hash && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for LockName {}

impl Hash for LockName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// By their texts.
impl Ord for LockName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl PartialOrd for LockName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hasher for KnownHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not of a name, which writes one number.
        self.0 = HASHES.hash_one((self.0, bytes));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

shown_as_text!(LockName);

/// Why a text cannot name a lock, locks, a class of locks, or a namespace.
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
    /// No name was given where at least one is needed.
    #[error("no lock is named; give the name of at least one")]
    None,
    /// The text cannot be a [`NamePattern`](super::NamePattern).
    #[error("the pattern {pattern:?} {what}")]
    Pattern {
        /// The text that was given.
        pattern: String,
        /// What is wrong with it.
        what: &'static str,
    },
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

impl NameError {
    /// The status of HTTP with which a service answers a client that chose the name: 400.
    pub fn status(&self) -> u16 {
        400
    }
}

/// The status, and a text for the client, which does not repeat the name.
#[cfg(feature = "axum")]
impl axum_core::response::IntoResponse for NameError {
    fn into_response(self) -> axum_core::response::Response {
        (http::StatusCode::BAD_REQUEST, "this name cannot be used").into_response()
    }
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

    #[cfg(feature = "axum")]
    #[test]
    fn a_name_that_is_refused_is_the_fault_of_who_chose_it() {
        use axum_core::response::IntoResponse;

        let error = LockName::new("}x").unwrap_err();
        let status = error.status();
        assert_eq!((status, error.into_response().status().as_u16()), (400, status));
    }

    #[test]
    fn names_are_the_same_and_in_order_by_their_texts() {
        let name = |text: &str| LockName::new(text).unwrap();
        assert_eq!(name("a"), name("a"));
        assert!(name("a") < name("b") && name("a") < name("aa"));
        let known: NameMap<usize> = (0..1000).map(|n| (name(&n.to_string()), n)).collect();
        assert!((0..1000).all(|n| known.get(&name(&n.to_string())) == Some(&n)));
        assert_eq!(known.get(&name("1000")), None);
    }

    #[test]
    fn names_are_spread_over_shards() {
        let names = (0..1600).map(|n| LockName::new(format!("orders/{n}")).unwrap());
        let mut shards = [0; 16];
        names.for_each(|name| shards[name.shard(16)] += 1);
        assert!(shards.iter().all(|names| (50..200).contains(names)), "{shards:?}");
    }
}
