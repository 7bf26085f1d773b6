use redis::{ConnectionInfo, ProtocolVersion, RedisError, Value, aio::MultiplexedConnection};

/// How a connection is set up once it is made: its database, and its name.
///
/// User and password stay with the client library, whose `HELLO` tells them to the server.
#[derive(Debug, Clone)]
pub(super) struct Login {
    db: i64,
    client_name: String,
}

impl Login {
    /// Splits off what is set up later; the rest connects in RESP3, in which the end of a
    /// connection is told.
    pub(super) fn split_off(info: &ConnectionInfo, client_name: &str) -> (Self, ConnectionInfo) {
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let login = Self { db: settings.db(), client_name: client_name.into() };
        let settings = settings.set_protocol(ProtocolVersion::RESP3).set_db(0);
        (login, info.clone().set_redis_settings(settings))
    }

    /// The same without a database, for a connection that only subscribes: channels belong to
    /// none.
    pub(super) fn without_database(&self) -> Self {
        Self { db: 0, client_name: self.client_name.clone() }
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
}
