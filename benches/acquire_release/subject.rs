use leasehold::{LockRuntime, error::ConnectError};

use crate::round::Share;

/// Connects with the library's default settings.
pub(crate) async fn connect(url: &str) -> Result<LockRuntime, ConnectError> {
    LockRuntime::connect(url).await
}

/// Acquires and releases each name in turn through the library's public API.
pub(crate) async fn worker(locks: LockRuntime, share: Share) -> Result<(), String> {
    for pair in 0..share.pairs {
        let name = &share.names[pair % share.names.len()];
        let lock = locks.lock(name).map_err(|error| error.to_string())?;
        let guard = lock.acquire().await.map_err(|error| error.to_string())?;
        guard.release().await.map_err(|error| error.to_string())?;
    }
    Ok(())
}
