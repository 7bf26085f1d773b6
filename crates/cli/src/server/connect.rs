use std::env;

#[cfg(feature = "tls")]
use leasehold::redis::Pem;
use leasehold::{
    LockRuntime, LockRuntimeBuilder, Strictness,
    error::ConnectError,
    redis::{Credentials, RedisAddress},
};
use tokio::runtime::Runtime;

use super::{address::address, password};
use crate::{
    args::ServerArgs,
    ending::{Cause, CliError},
};

/// The settings of a runtime of this program, and where it connects to.
pub(crate) fn settings(
    args: &ServerArgs,
    service: &str,
) -> Result<(LockRuntimeBuilder, RedisAddress), CliError> {
    let address = address(args, variable("REDIS_URL")?)?;
    let mut builder = LockRuntime::builder().service(service).strictness(Strictness::Ignore);
    if let Some(namespace) = namespace(args)? {
        builder = builder.namespace(namespace);
    }
    let builder = with_login(builder, args)?;
    #[cfg(feature = "tls")]
    let builder = with_tls(builder, args);
    Ok((builder, address))
}

/// The prefix of all keys, if it is not the default.
pub(crate) fn namespace(args: &ServerArgs) -> Result<Option<String>, CliError> {
    given(args.namespace.as_ref(), "LEASEHOLD_NAMESPACE")
}

/// What an option says, or else a variable.
fn given(option: Option<&String>, name: &str) -> Result<Option<String>, CliError> {
    option.map_or_else(|| variable(name), |given| Ok(Some(given.clone())))
}

/// A variable of the environment; one that is empty counts as one that is not set.
fn variable(name: &str) -> Result<Option<String>, CliError> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            Err(CliError::usage(format!("{name} is not valid UTF-8: set it anew")))
        }
    }
}

fn with_login(
    builder: LockRuntimeBuilder,
    args: &ServerArgs,
) -> Result<LockRuntimeBuilder, CliError> {
    let user = given(args.user.as_ref(), "REDIS_USERNAME")?;
    let file = args.password_file.clone();
    let password = match &file {
        Some(file) => Some(password::in_file(file)?),
        None => variable("REDIS_PASSWORD")?,
    };
    match (password, user) {
        (Some(password), user) => Ok(builder.credentials(move || {
            // Read again for each connection, because passwords change.
            let read = file.as_deref().map_or_else(|| Ok(password.clone()), password::in_file);
            let login = read.map(|read| match &user {
                Some(user) => Credentials::new(user, read),
                None => Credentials::password(read),
            });
            async move { login.map_err(|failure| failure.text.into()) }
        })),
        (None, Some(user)) => Err(CliError::usage(format!(
            "there is no password for the user {user:?}: set REDIS_PASSWORD, or write --password-file FILE"
        ))),
        (None, None) => Ok(builder),
    }
}

#[cfg(feature = "tls")]
fn with_tls(builder: LockRuntimeBuilder, args: &ServerArgs) -> LockRuntimeBuilder {
    let mut builder = builder.tls_names("--tls-ca", "--tls-cert", "--tls-key");
    if let Some(file) = &args.tls_ca {
        builder = builder.tls_root_ca(Pem::file(file));
    }
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        builder = builder.tls_client_certificate(Pem::file(certificate), Pem::file(key));
    }
    builder
}

/// Connects, and says where to when it cannot.
pub(crate) async fn connect(
    builder: LockRuntimeBuilder,
    address: RedisAddress,
) -> Result<LockRuntime, CliError> {
    let (shown, again) = (address.to_string(), builder.clone());
    let connected = match builder.connect(address.clone()).await {
        // It serves looks, renewals and the ends of leases; an acquire waits, and says so at its end.
        Err(ConnectError::Store(refused)) if refused.what().contains("OOM ") => {
            again.connect_lazy(address)
        }
        connected => connected,
    };
    connected.map_err(|error| told(error, &shown))
}

/// The same to a server that locks can be had of now: one that is full is refused.
pub(crate) async fn connect_serving(
    builder: LockRuntimeBuilder,
    address: RedisAddress,
) -> Result<LockRuntime, CliError> {
    let shown = address.to_string();
    builder.connect(address).await.map_err(|error| told(error, &shown))
}

/// A failed connection, with the address and what to write.
fn told(error: ConnectError, address: &str) -> CliError {
    let what = error.to_string();
    let failure = CliError::from(error);
    let advice = match failure.cause {
        Cause::Unreachable => {
            "; another address is written as --url redis://HOST:6379, or into REDIS_URL"
        }
        Cause::Config => "",
        _ => return failure,
    };
    CliError { text: format!("cannot use {address}: {what}{advice}"), ..failure }
}

/// A runtime that has not connected yet.
pub(crate) fn lazily(args: &ServerArgs) -> Result<LockRuntime, CliError> {
    let (builder, address) = settings(args, "leasehold")?;
    let shown = address.to_string();
    builder.connect_lazy(address).map_err(|error| told(error, &shown))
}

/// A connected runtime with the defaults.
pub(crate) async fn connected(args: &ServerArgs) -> Result<LockRuntime, CliError> {
    let (builder, address) = settings(args, "leasehold")?;
    connect(builder, address).await
}

/// As [`connected`], to a server that locks can be had of now.
pub(crate) async fn serving(args: &ServerArgs) -> Result<LockRuntime, CliError> {
    let (builder, address) = settings(args, "leasehold")?;
    connect_serving(builder, address).await
}

/// The tokio runtime of a command: one thread, which does little.
pub(crate) fn tokio() -> Result<Runtime, CliError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| {
        CliError::config(format!("the system refuses what a runtime needs: {error}"))
    })
}
