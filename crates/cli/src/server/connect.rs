use std::{env, fs, path::Path};

use leasehold::{
    LockRuntime, LockRuntimeBuilder, Strictness, error::ConnectError, redis::RedisAddress,
};
use tokio::runtime::Runtime;

use super::{address::address, password};
use crate::{
    args::ServerArgs,
    ending::{Cause, Failure},
};

/// The settings of a runtime of this program, and where it connects to.
pub(crate) fn settings(
    args: &ServerArgs,
    service: &str,
) -> Result<(LockRuntimeBuilder, RedisAddress), Failure> {
    let address = address(args, variable("REDIS_URL")?)?;
    let builder = LockRuntime::builder().service(service).strictness(Strictness::Ignore);
    let builder = match args
        .namespace
        .clone()
        .map_or_else(|| variable("LEASEHOLD_NAMESPACE"), |name| Ok(Some(name)))?
    {
        Some(namespace) => builder.namespace(namespace),
        None => builder,
    };
    let builder = with_login(builder, args)?;
    Ok((with_tls(builder, args)?, address))
}

/// A variable of the environment; one that is empty counts as one that is not set.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{name} is not valid UTF-8: set it anew")))
        }
    }
}

fn with_login(
    builder: LockRuntimeBuilder,
    args: &ServerArgs,
) -> Result<LockRuntimeBuilder, Failure> {
    let user =
        args.user.clone().map_or_else(|| variable("REDIS_USERNAME"), |user| Ok(Some(user)))?;
    if let Some(file) = args.password_file.clone() {
        password::in_file(&file)?;
        // Read again for each connection, because passwords change.
        return Ok(builder.credentials(move || {
            let login = password::in_file(&file).map(|read| password::login(user.as_deref(), read));
            async move { login.map_err(|failure| failure.text.into()) }
        }));
    }
    match (variable("REDIS_PASSWORD")?, user) {
        (Some(read), user) => {
            let login = password::login(user.as_deref(), read);
            Ok(builder.credentials(move || {
                let login = login.clone();
                async move { Ok(login) }
            }))
        }
        (None, Some(user)) => Err(Failure::usage(format!(
            "there is no password for the user {user:?}: set REDIS_PASSWORD, or write --password-file FILE"
        ))),
        (None, None) => Ok(builder),
    }
}

#[cfg(feature = "tls")]
fn with_tls(builder: LockRuntimeBuilder, args: &ServerArgs) -> Result<LockRuntimeBuilder, Failure> {
    let mut builder = builder;
    if let Some(file) = &args.tls_ca {
        builder = builder.tls_root_ca(pem("--tls-ca", file)?);
    }
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        builder =
            builder.tls_client_certificate(pem("--tls-cert", certificate)?, pem("--tls-key", key)?);
    }
    Ok(builder)
}

#[cfg(not(feature = "tls"))]
fn with_tls(
    builder: LockRuntimeBuilder,
    _args: &ServerArgs,
) -> Result<LockRuntimeBuilder, Failure> {
    Ok(builder)
}

#[cfg(feature = "tls")]
fn pem(option: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| {
        let text = format!(
            "{option}: {} cannot be read ({error}): name a file that this user may read",
            file.display()
        );
        Failure::new(Cause::Config, text)
    })
}

/// Connects, and says where to when it cannot.
pub(crate) async fn connect(
    builder: LockRuntimeBuilder,
    address: RedisAddress,
) -> Result<LockRuntime, Failure> {
    let shown = address.to_string();
    builder.connect(address).await.map_err(|error| told(error, &shown))
}

/// A failed connection, with the address and what to write.
fn told(error: ConnectError, address: &str) -> Failure {
    const OTHER_LOGIN: &str = "; for another login, write --user and --password-file, or set REDIS_USERNAME and REDIS_PASSWORD";
    let (what, of_config) = match &error {
        ConnectError::Store(error)
            if error.is_refused_login() || error.what().contains("(NOAUTH)") =>
        {
            (error.what().to_owned(), OTHER_LOGIN)
        }
        _ => (error.to_string(), ""),
    };
    let failure = Failure::from(error);
    let advice = match failure.cause {
        Cause::Unreachable => {
            "; another address is written as --url redis://HOST:6379, or into REDIS_URL"
        }
        Cause::Config => of_config,
        _ => return failure,
    };
    Failure { text: format!("cannot use {address}: {what}{advice}"), ..failure }
}

/// A runtime that has not connected yet.
pub(crate) fn lazily(args: &ServerArgs, service: &str) -> Result<LockRuntime, Failure> {
    let (builder, address) = settings(args, service)?;
    let shown = address.to_string();
    builder.connect_lazy(address).map_err(|error| told(error, &shown))
}

/// A connected runtime with the defaults.
pub(crate) async fn connected(args: &ServerArgs, service: &str) -> Result<LockRuntime, Failure> {
    let (builder, address) = settings(args, service)?;
    connect(builder, address).await
}

/// The tokio runtime of a command: one thread, which does little.
pub(crate) fn tokio() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| {
        Failure::new(Cause::Config, format!("the system refuses what a runtime needs: {error}"))
    })
}
