//! The scripts of the library, put together as it does, for floors that run them without it.

/// The library's own list of what makes a script.
#[path = "../crates/core/src/redis/scripts.rs"]
#[expect(dead_code, reason = "each floor calls some of them")]
mod scripts;

/// What the list makes of the text of a script.
mod script {
    /// A script as a client without the library calls it.
    #[derive(Debug)]
    pub(super) struct Script(pub(super) redis::Script);

    impl Script {
        #[expect(clippy::needless_pass_by_value, reason = "the library takes it so")]
        pub(super) fn new(text: String) -> Self {
            Self(redis::Script::new(&text))
        }
    }
}

/// Asks for a lock.
pub(crate) fn acquire() -> &'static redis::Script {
    &scripts::ACQUIRE.0
}

/// Ends a lease and grants the lock to the next.
pub(crate) fn release() -> &'static redis::Script {
    &scripts::RELEASE.0
}

/// The keys of a lock that scripts which may grant it take first.
pub(crate) fn keys(namespace: &str, name: &str) -> [String; 4] {
    ["lease", "fence", "queue", "waiters"].map(|what| format!("{namespace}:{{{name}}}:{what}"))
}

/// The key of the withdrawal mark of an acquisition.
pub(crate) fn withdrawn(namespace: &str, name: &str, id: &str) -> String {
    format!("{namespace}:{{{name}}}:withdrawn:{id}")
}

/// Extends leases.
pub(crate) fn renew() -> &'static redis::Script {
    &scripts::RENEW.0
}
