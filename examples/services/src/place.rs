use std::{env, fmt, sync::Arc, time::Duration};

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    store::{FenceSettings, MemoryStore},
    time::SystemClock,
};

use crate::Failure;

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
        let url = env::var("REDIS_URL").ok().filter(|url| !url.is_empty());
        url.map_or_else(Self::embedded, Self::Redis)
    }

    /// The memory of this process.
    pub fn embedded() -> Self {
        let store = MemoryStore::new(Arc::new(SystemClock), FenceSettings::default());
        Self::Embedded(Arc::new(store))
    }

    /// Finds out whether it can be reached, and says where it is.
    ///
    /// # Errors
    ///
    /// What the server says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn check(&self) -> Result<(), Failure> {
        let _ = self.open(LockRuntime::builder()).await?.shutdown(SHUTDOWN).await;
        println!("{self}");
        Ok(())
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
    pub async fn open(&self, builder: LockRuntimeBuilder) -> Result<LockRuntime, Failure> {
        Ok(match self {
            Self::Redis(url) => {
                builder.connect(url).await.map_err(|error| format!("REDIS_URL: {error}"))?
            }
            Self::Embedded(store) => builder.on_store(Arc::clone(store) as Arc<_>)?,
        })
    }
}

/// A sentence for the user. An address may hold a password, so it is not in the sentence.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis(_) => "the locks are on the server of REDIS_URL",
            Self::Embedded(_) => {
                "the locks are in the memory of this process; REDIS_URL is not set"
            }
        })
    }
}

/// How long a shutdown waits for releases to be confirmed.
pub const SHUTDOWN: Duration = Duration::from_secs(5);
