use std::{env, error::Error, sync::Arc, time::Duration};

use leasehold::{FenceSettings, LockRuntime, LockRuntimeBuilder, MemoryStore, SystemClock};

/// Where the locks of an example are: on the server that `REDIS_URL` names, or in this process.
#[derive(Debug, Clone)]
pub enum Place {
    /// On a server.
    Redis(String),
    /// In the memory of this process, shared by all runtimes that are opened here.
    Embedded(Arc<MemoryStore>),
}

impl Place {
    /// Reads `REDIS_URL`.
    pub fn from_env() -> Self {
        env::var("REDIS_URL").map_or_else(|_| Self::embedded(), Self::Redis)
    }

    /// The memory of this process.
    pub fn embedded() -> Self {
        let store = MemoryStore::new(Arc::new(SystemClock), FenceSettings::default());
        Self::Embedded(Arc::new(store))
    }

    /// Opens a runtime there, as a process of a service would.
    ///
    /// # Errors
    ///
    /// What the builder or the server says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn open(
        &self,
        builder: LockRuntimeBuilder,
    ) -> Result<LockRuntime, Box<dyn Error + Send + Sync>> {
        Ok(match self {
            Self::Redis(url) => builder.connect(url).await?,
            Self::Embedded(store) => builder.on_store(Arc::clone(store) as Arc<_>)?,
        })
    }
}

/// How long a shutdown waits for what is on its way.
pub const SHUTDOWN: Duration = Duration::from_secs(5);
