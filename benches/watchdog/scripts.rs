//! The scripts of the library, put together as it does, for the task that renews without it.

/// The library's own list of what makes a script.
#[path = "../../crates/core/src/redis/scripts.rs"]
#[expect(dead_code, reason = "a lease is acquired and renewed")]
mod library;

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
    &library::ACQUIRE.0
}

/// Extends leases.
pub(crate) fn renew() -> &'static redis::Script {
    &library::RENEW.0
}
