use std::sync::Arc;

use leasehold::fencing::sqlx::{AssertSqlSafe, Connection, PgConnection, query, query_scalar};
use leasehold_testkit::{PostgresServer, RedisServer};
use tokio::runtime::Runtime;

/// A Redis for locks, and a PostgreSQL with a database for each program.
pub(crate) struct Servers {
    redis: RedisServer,
    postgres: Arc<PostgresServer>,
}

impl Servers {
    pub(crate) fn start() -> Self {
        Self { redis: RedisServer::start(), postgres: PostgresServer::shared() }
    }

    pub(crate) fn redis(&self) -> String {
        self.redis.url()
    }

    /// A database of that name, made when it is not there.
    pub(crate) fn database(&self, name: &str) -> String {
        let create = async {
            let mut connection = PgConnection::connect(&self.postgres.url()).await?;
            query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await
        };
        let created = Runtime::new().expect("a runtime").block_on(create);
        let is_there = |error: &leasehold::fencing::sqlx::Error| {
            error.as_database_error().is_some_and(|error| error.code() == Some("42P04".into()))
        };
        if let Err(error) = created.map(drop) {
            assert!(is_there(&error), "{error}");
        }
        self.postgres.url_of(name)
    }

    /// What a query about a database answers.
    pub(crate) fn number(&self, name: &str, query: &'static str) -> i64 {
        let url = self.postgres.url_of(name);
        let read = async {
            let mut connection = PgConnection::connect(&url).await?;
            query_scalar::<_, Option<i64>>(query).fetch_optional(&mut connection).await
        };
        let read = Runtime::new().expect("a runtime").block_on(read);
        read.expect("the database answers").flatten().unwrap_or(0)
    }

    pub(crate) fn leave_no_key_without_ttl(&self) {
        assert_eq!(self.redis.keys_without_ttl(), [""; 0]);
    }
}
