use crate::types::{AcquisitionId, LockName, Namespace, RuntimeId};

/// The names of all keys and channels, made in this one place.
///
/// | what | name |
/// |---|---|
/// | lease | `<namespace>:{<lock>}:lease` |
/// | fence counter | `<namespace>:{<lock>}:fence` |
/// | queue of waiting runtimes, by arrival | `<namespace>:{<lock>}:queue` |
/// | the place of each of them | `<namespace>:{<lock>}:waiters` |
/// | withdrawal mark | `<namespace>:{<lock>}:withdrawn:<acquisition>` |
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

    /// The namespace of all names.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The hash that is the lease.
    pub fn lease(&self, name: &LockName) -> String {
        self.tagged(name, "lease")
    }

    /// Appends the key of the lease.
    pub(crate) fn write_lease(&self, to: &mut String, name: &LockName) {
        self.write_tagged(to, name, "lease");
    }

    /// The counter of fence tokens.
    pub fn counter(&self, name: &LockName) -> String {
        self.tagged(name, "fence")
    }

    /// The sorted set of the runtimes that wait, in the order of their arrival.
    pub fn queue(&self, name: &LockName) -> String {
        self.tagged(name, "queue")
    }

    /// The hash with the place of each waiting runtime.
    pub fn waiters(&self, name: &LockName) -> String {
        self.tagged(name, "waiters")
    }

    /// The mark that keeps a withdrawn acquisition from coming back.
    pub fn withdrawn(&self, name: &LockName, id: AcquisitionId) -> String {
        let mut key = self.tagged(name, "withdrawn");
        key.reserve(60);
        key.push(':');
        key.push_str(&id.to_text());
        key
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
        let (namespace, named) = (self.namespace.as_str(), name.as_str());
        let mut key = String::with_capacity(namespace.len() + named.len() + what.len() + 4);
        self.write_tagged(&mut key, name, what);
        key
    }

    fn write_tagged(&self, to: &mut String, name: &LockName, what: &str) {
        for part in [self.namespace.as_str(), ":{", name.as_str(), "}:", what] {
            to.push_str(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn keys_of_different_locks_never_meet() {
        let keys = KeyScheme::default();
        let names =
            ["a", "a}:fence", "a}:lease", "{a", "a{b}c", "a}b", "withdrawn", "a}:withdrawn"];
        let id = AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1);
        let mut all = std::collections::BTreeSet::new();
        for name in names {
            let name = LockName::new(name).unwrap();
            let of_name = [
                keys.lease(&name),
                keys.counter(&name),
                keys.queue(&name),
                keys.waiters(&name),
                keys.withdrawn(&name, id),
            ];
            for key in of_name {
                assert!(all.insert(key.clone()), "{key}");
            }
        }
        assert!(all.contains("leasehold:{a}:lease"));
    }
}
