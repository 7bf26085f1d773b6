//! The server: its address, the login, and the runtime that connects to it.

mod address;
mod connect;
mod password;

pub(crate) use connect::{
    connect, connect_serving, connected, lazily, namespace, serving, settings, tokio,
};
