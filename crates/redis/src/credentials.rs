use std::{error::Error, fmt, pin::Pin};

use redis::ConnectionInfo;

/// A user and a password for one connection.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// A user and their password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// The password of the default user.
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// `info` with these credentials.
    pub(super) fn on(&self, info: ConnectionInfo) -> ConnectionInfo {
        let settings = info.redis_settings().clone().set_password(&self.password);
        let settings = match &self.user {
            Some(user) => settings.set_username(user),
            None => settings,
        };
        info.set_redis_settings(settings)
    }
}

/// `Debug` hides the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a provider has no credentials at the moment.
///
/// Its text becomes part of errors and log lines: keep secrets out of it.
pub type CredentialsError = Box<dyn Error + Send + Sync>;

/// A future of the answer of a [`CredentialsProvider`].
pub type CredentialsFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Credentials, CredentialsError>> + Send + 'a>>;

/// Provides credentials for each new connection: for passwords and tokens that change.
///
/// It is asked whenever a connection is made; open ones stay as they are. The answer has to come
/// within the connect timeout. A failure, and credentials that the server refuses, count as an
/// outage: waits, renewals and releases are tried again, and the provider is asked again.
///
/// An async closure without arguments is a provider:
///
/// ```
/// # use leasehold_redis::{Credentials, CredentialsProvider};
/// # fn is_provider(_: impl CredentialsProvider) {}
/// is_provider(|| async {
///     let password = std::fs::read_to_string("/run/secrets/redis")?;
///     Ok(Credentials::new("app", password.trim_end()))
/// });
/// ```
pub trait CredentialsProvider: Send + Sync + 'static {
    /// The credentials of the next connection.
    ///
    /// # Errors
    ///
    /// Any error: the command that needed the connection fails with a [`StoreError`](leasehold_core::StoreError) of
    /// kind `Definite` that repeats the error's text.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the connection takes too long.
    fn credentials(&self) -> CredentialsFuture<'_>;
}

/// `Debug` prints only the type.
impl fmt::Debug for dyn CredentialsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsProvider")
    }
}

impl<F, A> CredentialsProvider for F
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Result<Credentials, CredentialsError>> + Send + 'static,
{
    fn credentials(&self) -> CredentialsFuture<'_> {
        Box::pin(self())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for credentials in [Credentials::new("app", "s3cret"), Credentials::password("s3cret")] {
            let shown = format!("{credentials:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
