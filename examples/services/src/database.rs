use std::{env, fmt, sync::Arc};

use leasehold::fencing::sqlx::{
    Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::Failure;

/// The PostgreSQL server that `DATABASE_URL` names.
#[derive(Clone)]
pub struct Database(Arc<PgConnectOptions>);

impl Database {
    const CONNECTIONS: u32 = 8;

    /// Reads `DATABASE_URL`; `None` when neither it nor `REDIS_URL` is set.
    ///
    /// # Errors
    ///
    /// Only one of the two is set, or the address is not one of PostgreSQL.
    pub fn from_env() -> Result<Option<Self>, Failure> {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        match (set("REDIS_URL"), set("DATABASE_URL")) {
            (Some(_), Some(url)) => Ok(Some(Self::at(&url)?)),
            (None, None) => Ok(None),
            _ => Err("set both REDIS_URL and DATABASE_URL, or neither".into()),
        }
    }

    fn at(url: &str) -> Result<Self, Failure> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("DATABASE_URL: an address begins with postgres://".into());
        }
        let options = url.parse().map_err(|error| format!("DATABASE_URL: {error}"))?;
        Ok(Self(Arc::new(options)))
    }

    /// Connects once: a pool would try a server that refuses connections again and again.
    ///
    /// # Errors
    ///
    /// The server is out of reach or refuses the login.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn check(&self) -> Result<(), Failure> {
        let failed = |error| format!("DATABASE_URL: {self}: {error}");
        let connection = PgConnection::connect_with(&self.0).await.map_err(failed)?;
        Ok(connection.close().await?)
    }

    /// A pool, which connects when it is used and belongs to the runtime that uses it.
    #[must_use]
    pub fn pool(&self) -> PgPool {
        let options = PgPoolOptions::new().max_connections(Self::CONNECTIONS);
        options.connect_lazy_with(PgConnectOptions::clone(&self.0))
    }
}

/// The address without user and password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get_socket() {
            Some(folder) => write!(f, "{}", folder.display())?,
            None => write!(f, "{}:{}", self.0.get_host(), self.0.get_port())?,
        }
        write!(f, "/{}", self.0.get_database().unwrap_or_default())
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}
