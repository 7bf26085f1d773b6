use std::{borrow::Cow, convert::Infallible};

use leasehold_core::{StoreError, StoreErrorKind};

/// Something that is not the address of a Redis server: which part is wrong, and what to write.
///
/// Never holds a user or a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the Redis address {shown:?} cannot be used: {what}; {remedy}")]
pub struct AddressError {
    part: AddressPart,
    shown: String,
    what: Cow<'static, str>,
    remedy: Cow<'static, str>,
}

/// A part of the address of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressPart {
    /// What stands before `://`.
    Scheme,
    /// The name or the IP address of the server.
    Host,
    /// The number after the host.
    Port,
    /// The number of the database.
    Database,
    /// The user and the password.
    Login,
    /// The name under which Sentinels watch a master.
    Master,
    /// The path of a unix socket.
    Socket,
    /// Whether and how TLS is used.
    Tls,
    /// What stands behind `?`.
    Parameter,
    /// Anything else.
    Other,
}

impl AddressError {
    /// `shown` has nothing that might be a user or password.
    pub(super) fn new(
        part: AddressPart,
        shown: impl Into<String>,
        what: impl Into<Cow<'static, str>>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { part, shown: shown.into(), what: what.into(), remedy: remedy.into() }
    }

    /// The same error about one host of a list; `usual` is how such a list is written.
    pub(super) fn in_list(self, shown: String, usual: &'static str) -> Self {
        let is_of_host = matches!(self.part, AddressPart::Host | AddressPart::Port);
        let remedy = if is_of_host { usual.into() } else { self.remedy };
        Self { shown, remedy, ..self }
    }

    /// The part that is wrong.
    pub fn part(&self) -> AddressPart {
        self.part
    }
}

/// An address that was read already is never refused.
impl From<AddressError> for StoreError {
    fn from(error: AddressError) -> Self {
        let AddressError { shown, what, remedy, .. } = error;
        let what = format!("the Redis address {shown:?} cannot be used: {what}");
        Self::new(StoreErrorKind::Config, what, remedy)
    }
}

impl From<Infallible> for AddressError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
