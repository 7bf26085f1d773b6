use crate::types::{LockName, NamePattern, Namespace, RuntimeId};

/// The names of all keys and channels, made in this one place.
///
/// | what | name |
/// |---|---|
/// | lease and fence counter | `<namespace>:{<lock>}:lease` |
/// | queue of waiting runtimes, by arrival | `<namespace>:{<lock>}:queue` |
/// | the place of each of them | `<namespace>:{<lock>}:waiters` |
/// | withdrawn acquisitions | `<namespace>:{<lock>}:withdrawn` |
/// | readers who share the lease | `<namespace>:{<lock>}:readers` |
/// | boot mark of a node of a quorum | `<namespace>:boot` |
/// | channel of a runtime | `<namespace>:runtime:<runtime>` |
///
/// All keys of a lock share one hash tag and so one cluster slot. Two locks never share a key: a
/// namespace has no brace, so the first `{` begins the lock's name, and the last `}` ends it.
#[derive(Debug, Clone, Default)]
pub struct KeyScheme {
    namespace: Namespace,
}

impl KeyScheme {
    /// The names under a namespace.
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace }
    }

    /// The prefix of all names.
    #[doc(hidden)]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The string with the lease and the last fence token.
    pub fn lease(&self, name: &LockName) -> String {
        self.tagged(name, LEASE)
    }

    /// A glob of Redis for the keys of the leases of all locks that match a pattern, and of others: it
    /// has one `*` at most, because a glob with many takes a server long.
    #[doc(hidden)]
    pub fn leases(&self, pattern: &NamePattern) -> String {
        let (begin, end) = pattern.ends();
        let mut glob = format!("{}:{{", self.namespace);
        push_literal(&mut glob, &begin);
        if let Some(end) = end {
            glob.push('*');
            push_literal(&mut glob, &end);
        }
        glob + "}:" + LEASE
    }

    /// A glob of Redis for all keys of the namespace: none of its characters has a meaning in one.
    #[doc(hidden)]
    pub fn any(&self) -> String {
        format!("{}:*", self.namespace)
    }

    /// The lock whose lease has a key; `None` for any other key.
    #[doc(hidden)]
    pub fn lock_of_lease(&self, key: &[u8]) -> Option<LockName> {
        let name = str::from_utf8(key).ok()?.strip_prefix(self.namespace.as_str())?;
        let name = name.strip_prefix(":{")?.strip_suffix(LEASE)?.strip_suffix("}:")?;
        LockName::new(name).ok()
    }

    /// The four keys of a lock, in the order of the scripts.
    #[doc(hidden)]
    pub fn all(&self, name: &LockName) -> [String; 4] {
        [LEASE, QUEUE, WAITERS, WITHDRAWN].map(|what| self.tagged(name, what))
    }

    /// The three keys of a lock on a node of a quorum, in the order of its script.
    #[doc(hidden)]
    pub fn all_on_node(&self, name: &LockName) -> [String; 3] {
        [LEASE, WAITERS, WITHDRAWN].map(|what| self.tagged(name, what))
    }

    /// The mark by which a node of a quorum knows that it has all its data.
    pub fn boot(&self) -> String {
        format!("{}:boot", self.namespace)
    }

    /// The sorted set of the runtimes that wait, in the order of their arrival.
    pub fn queue(&self, name: &LockName) -> String {
        self.tagged(name, QUEUE)
    }

    /// The hash with the place of each waiting runtime.
    pub fn waiters(&self, name: &LockName) -> String {
        self.tagged(name, WAITERS)
    }

    /// The sorted set of the acquisitions that were withdrawn, and must not come back.
    pub fn withdrawn(&self, name: &LockName) -> String {
        self.tagged(name, WITHDRAWN)
    }

    /// The channel for pushes to a runtime.
    pub fn channel(&self, runtime: RuntimeId) -> String {
        format!("{}{runtime}", self.channels())
    }

    /// The prefix of the channels of runtimes; the rest is the runtime's id.
    pub fn channels(&self) -> String {
        format!("{}:runtime:", self.namespace)
    }

    fn tagged(&self, name: &LockName, what: &str) -> String {
        [self.namespace.as_str(), ":{", name.as_str(), "}:", what].concat()
    }
}

/// Appends a text in which Redis sees no glob.
fn push_literal(glob: &mut String, text: &str) {
    for one in text.chars() {
        if matches!(one, '*' | '?' | '[' | ']' | '\\') {
            glob.push('\\');
        }
        glob.push(one);
    }
}

const LEASE: &str = "lease";
const QUEUE: &str = "queue";
const WAITERS: &str = "waiters";
const WITHDRAWN: &str = "withdrawn";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_different_locks_never_meet() {
        let keys = KeyScheme::default();
        let names =
            ["a", "a}:fence", "a}:lease", "{a", "a{b}c", "a}b", "withdrawn", "a}:withdrawn"];
        let mut all = std::collections::BTreeSet::new();
        for name in names {
            let name = LockName::new(name).unwrap();
            let of_name =
                [keys.lease(&name), keys.queue(&name), keys.waiters(&name), keys.withdrawn(&name)];
            for key in of_name {
                assert!(all.insert(key.clone()), "{key}");
            }
        }
        assert!(all.contains("leasehold:{a}:lease"));
    }

    #[test]
    fn a_key_tells_its_lock() {
        let keys = KeyScheme::default();
        for name in ["a", "a}:lease", "{a", "a}:lease}:lease"] {
            let name = LockName::new(name).unwrap();
            assert_eq!(keys.lock_of_lease(keys.lease(&name).as_bytes()), Some(name.clone()));
            assert_eq!(keys.lock_of_lease(keys.queue(&name).as_bytes()), None);
        }
        for other in
            ["leasehold:{}:lease", "leasehold:{}}:lease", "other:{a}:lease", "leasehold:{a"]
        {
            assert_eq!(keys.lock_of_lease(other.as_bytes()), None, "{other}");
        }
        assert_eq!(keys.lock_of_lease(b"leasehold:{\xff}:lease"), None);
    }

    #[test]
    fn a_server_gets_a_glob_with_one_star_at_most() {
        let glob = |pattern: &str| KeyScheme::default().leases(&NamePattern::new(pattern).unwrap());
        assert_eq!(glob("*"), "leasehold:{*}:lease");
        assert_eq!(glob("a*b?c"), "leasehold:{a*c}:lease");
        assert_eq!(glob(r"a\[b"), r"leasehold:{a\[b}:lease");
    }
}
