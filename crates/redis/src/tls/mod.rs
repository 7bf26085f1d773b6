//! TLS: whom to trust and who to be, read anew for each connection, and why a handshake fails.

mod check;
mod fault;
mod given;
mod no_tls;
mod pem;
mod settings;

pub(crate) use fault::{is_foreign, told};
pub(crate) use given::{TlsGiven, TlsNames};
pub use pem::Pem;
pub(crate) use settings::TlsSettings;
