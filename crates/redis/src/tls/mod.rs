//! TLS: whom to trust and who to be, read anew for each connection, and why a handshake fails.

mod check;
mod fault;
mod no_tls;
mod pem;
mod settings;

pub use pem::Pem;
pub(crate) use settings::{TlsNames, TlsSettings};
