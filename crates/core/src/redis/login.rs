use std::fmt;

use redis::{
    ConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection,
};

/// Who to be on a connection, and which database to use.
///
/// The client library tells every error that answers its `AUTH` as a failed login, also that of a
/// server with too many clients. Logging in by ourselves keeps the server's words.
#[derive(Clone)]
pub(super) struct Login {
    credentials: Option<(Option<String>, String)>,
    db: i64,
    client_name: String,
}

impl Login {
    /// Splits the login off how to connect; in RESP3 it is part of the library's `HELLO`, and stays.
    pub(super) fn split_off(info: &ConnectionInfo, client_name: &str) -> (Self, ConnectionInfo) {
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let client_name = client_name.into();
        if settings.protocol() == ProtocolVersion::RESP3 {
            let login = Self { credentials: None, db: 0, client_name };
            return (login, info.clone().set_redis_settings(settings));
        }
        let user = settings.username().map(str::to_owned);
        let credentials = settings.password().map(|password| (user, password.to_owned()));
        let login = Self { credentials, db: settings.db(), client_name };
        let anonymous = RedisConnectionInfo::default().set_skip_set_lib_name();
        (login, info.clone().set_redis_settings(anonymous))
    }

    /// Logs in, selects the database, and tells a name for the server's list of clients, whose
    /// refusal does not matter.
    pub(super) async fn set_up(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        if let Some((user, password)) = &self.credentials {
            let mut auth = redis::cmd("AUTH");
            auth.arg(user.iter().collect::<Vec<_>>()).arg(password);
            auth.query_async::<Value>(connection).await?;
        }
        if self.db != 0 {
            redis::cmd("SELECT").arg(self.db).query_async::<Value>(connection).await?;
        }
        let mut name = redis::cmd("CLIENT");
        name.arg("SETNAME").arg(&self.client_name);
        let _ = name.query_async::<Value>(connection).await;
        Ok(())
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("db", &self.db).finish_non_exhaustive()
    }
}
