use std::{fmt, sync::Arc};

use redis::{
    Client, ConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection,
};

use super::{
    classify::{classify_dial, is_login},
    credentials::{Credentials, CredentialsProvider},
};
use crate::store::{StoreError, StoreErrorKind};

/// How a connection is set up: who to be, its database, and its name.
///
/// User and password of the address stay with the client library, whose `HELLO` tells them to the
/// server. A provider is asked for each connection.
#[derive(Clone)]
pub(super) struct Login {
    provider: Option<Arc<dyn CredentialsProvider>>,
    db: i64,
    client_name: String,
}

/// Why a connection that is made was not set up.
#[derive(Debug)]
pub(super) enum LoginError {
    /// The provider had no credentials, or the server refused them.
    Provider(StoreError),
    /// Anything else.
    Other(RedisError),
}

impl Login {
    /// Splits off what is set up later; the rest connects in RESP3, in which the end of a
    /// connection is told.
    pub(super) fn split_off(
        info: &ConnectionInfo,
        provider: Option<Arc<dyn CredentialsProvider>>,
        client_name: &str,
    ) -> (Self, ConnectionInfo) {
        let login =
            Self { db: info.redis_settings().db(), client_name: client_name.into(), provider };
        let settings = match login.provider {
            Some(_) => RedisConnectionInfo::default(),
            None => info.redis_settings().clone().set_db(0),
        };
        let settings = settings.set_skip_set_lib_name().set_protocol(ProtocolVersion::RESP3);
        (login, info.clone().set_redis_settings(settings))
    }

    /// The same without a database, for a connection that only subscribes: channels belong to
    /// none.
    pub(super) fn without_database(&self) -> Self {
        Self { db: 0, ..self.clone() }
    }

    /// The client that makes the next connection: the given one, with the provider's credentials if
    /// there is a provider.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Definite` when the provider fails.
    pub(super) async fn client(&self, client: &Client) -> Result<Client, StoreError> {
        match self.ask().await? {
            None => Ok(client.clone()),
            Some(credentials) => {
                let info = credentials.on(client.get_connection_info().clone());
                Client::open(info).map_err(|error| classify_dial(&error))
            }
        }
    }

    /// How a pool connects, which has one client for all connections: without the credentials of a
    /// provider, and in RESP2, which needs no login to begin.
    pub(super) fn of_pool(&self, info: &ConnectionInfo) -> ConnectionInfo {
        if self.provider.is_none() {
            return info.clone();
        }
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        info.clone().set_redis_settings(settings)
    }

    /// Logs a connection of a pool in with the credentials of the provider, if there is one.
    pub(super) async fn log_in(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), LoginError> {
        if let Some(credentials) = self.ask().await.map_err(LoginError::Provider)? {
            let answer = credentials.auth().query_async::<Value>(connection).await;
            answer.map_err(|error| self.refused(error))?;
        }
        Ok(())
    }

    /// Selects the database, and tells a name for the server's list of clients, whose refusal does
    /// not matter.
    pub(super) async fn set_up(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        if self.db != 0 {
            redis::cmd("SELECT").arg(self.db).query_async::<Value>(connection).await?;
        }
        let mut name = redis::cmd("CLIENT");
        name.arg("SETNAME").arg(&self.client_name);
        let _ = name.query_async::<Value>(connection).await;
        Ok(())
    }

    /// What a failure to connect or to log in means: after a refused password of the address only
    /// an operator helps, a provider may give another one next time.
    pub(super) fn refused(&self, error: RedisError) -> LoginError {
        if self.provider.is_none() || !is_login(&error) {
            return LoginError::Other(error);
        }
        let what = format!(
            "the server refused what the credentials provider gave: {}",
            classify_dial(&error).what()
        );
        LoginError::Provider(
            StoreError::new(StoreErrorKind::Definite, what, ASKED_AGAIN).as_answer(),
        )
    }

    async fn ask(&self) -> Result<Option<Credentials>, StoreError> {
        let Some(provider) = &self.provider else { return Ok(None) };
        provider.credentials().await.map(Some).map_err(|error| {
            let what = format!("cannot connect to Redis: the credentials provider failed: {error}");
            StoreError::new(StoreErrorKind::Definite, what, ASKED_AGAIN)
        })
    }
}

/// What follows from a failure of a provider.
pub(super) const ASKED_AGAIN: &str =
    "the provider is asked again for the next connection; see what it says if it stays";

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("db", &self.db).finish_non_exhaustive()
    }
}
