use std::{env, os::unix::net::UnixStream};

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
    library::{OTHER_LOGIN, login_is_of},
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
    let (builder, address) = with_login(builder, address, args)?;
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
    address: RedisAddress,
    args: &ServerArgs,
) -> Result<(LockRuntimeBuilder, RedisAddress), CliError> {
    let user = given(args.user.as_ref(), "REDIS_USERNAME")?;
    if let Some(file) = args.password_file.clone() {
        password::in_file(&file)?;
        login_is_of(&format!(
            "--password-file {} (user {}); write another password into it, or name another user by --user",
            file.display(),
            user.as_deref().unwrap_or("default")
        ));
        // Read again for each connection, because passwords change.
        let read = move || {
            let read = password::in_file(&file).map(|password| login(user.as_deref(), password));
            async move { read.map_err(|failure| failure.text.into()) }
        };
        return Ok((builder.credentials(read), address));
    }
    match (variable("REDIS_PASSWORD")?, user) {
        // As of a secret that was made of a file.
        (Some(password), _) if password.contains(['\r', '\n']) => {
            Err(CliError::config("REDIS_PASSWORD has a line break: set it anew without one"))
        }
        // As a part of the address it stays what it is: a wait that it is refused in ends.
        (Some(password), user) => {
            let named = user.as_ref().map(|user| format!(" (user {user})")).unwrap_or_default();
            login_is_of(&format!("REDIS_PASSWORD{named}; {OTHER_LOGIN}"));
            Ok((builder, address.with_credentials(&login(user.as_deref(), password))))
        }
        (None, Some(user)) => Err(CliError::usage(format!(
            "there is no password for the user {user:?}: set REDIS_PASSWORD, or write --password-file FILE"
        ))),
        (None, None) => {
            if address.info().redis_settings().password().is_some() {
                login_is_of(&format!("the address in REDIS_URL; {OTHER_LOGIN}"));
            }
            Ok((builder, address))
        }
    }
}

fn login(user: Option<&str>, password: String) -> Credentials {
    match user {
        Some(user) => Credentials::new(user, password),
        None => Credentials::password(password),
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
    let has_answered = matches!(&error, ConnectError::Store(error) if error.is_answer());
    let failure = CliError::from(error);
    let advice = match failure.cause {
        Cause::Unreachable if address.starts_with("redis://") && !has_answered => {
            "; another address is written as --url redis://HOST:6379, or into REDIS_URL"
        }
        Cause::Unreachable | Cause::Config => "",
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
    // It panics without files for its signals: as many as it opens are tried before.
    let files = [(); 3].map(|()| UnixStream::pair()).into_iter().collect::<Result<Vec<_>, _>>();
    let built = files.and_then(|files| {
        drop(files);
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    });
    built.map_err(|error| CliError::of_system(&error))
}
