//! The gate on PostgreSQL: a fence in each row, and a table of fences.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use leasehold::{
    Stamp,
    fencing::{
        FenceGate, GateError,
        postgres::{FenceTable, FencedRows, PostgresGate, Unwritten},
        sqlx::{self, PgPool, postgres::PgPoolOptions},
    },
};
use leasehold_testkit::{
    PostgresServer,
    contract::Task,
    gates::{BehindRelay, Faults, GateSubject, Outcome, Relay, Upstream},
};

use super::words::outcome;

/// Tables of one test on the server of all, and a relay before it.
#[derive(Debug)]
struct Postgres {
    /// Through the relay.
    pool: PgPool,
    /// Past it.
    beside: PgPool,
    kept: String,
    relay: Relay,
    _server: Arc<PostgresServer>,
}

impl Postgres {
    async fn start() -> (Self, u32) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let server = PostgresServer::shared();
        let socket = server.socket_folder().join(".s.PGSQL.5432");
        let relay = Relay::before(Upstream::Unix(socket)).await;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", relay.port());
        let options = || PgPoolOptions::new().max_connections(12);
        let pool = options().connect(&url).await.expect("the relay passes the login");
        let beside = options().connect(&server.url()).await.expect("the server answers");
        let kept = format!("kept_{number}");
        // A key of the user's, which is no longer than can be indexed.
        let create = format!(
            "CREATE TABLE {kept} (name TEXT COLLATE \"C\" PRIMARY KEY \
             CHECK (octet_length(name) <= {}), value TEXT)",
            PostgresGate::MAX_RESOURCE_BYTES
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(create))
            .execute(&beside)
            .await
            .expect("the table is new");
        (Self { pool, beside, kept, relay, _server: server }, number)
    }

    async fn read(&self, name: &str) -> Option<String> {
        if name.contains('\0') {
            return None;
        }
        let read = format!("SELECT value FROM {} WHERE name = $1", self.kept);
        let value = sqlx::query_scalar(sqlx::AssertSqlSafe(read))
            .bind(name)
            .fetch_optional(&self.beside)
            .await;
        value.expect("an answer").flatten()
    }

    fn write(&self) -> String {
        format!(
            "INSERT INTO {} (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            self.kept
        )
    }

    async fn write_past(&self, name: &str, value: &str) -> Outcome {
        let write = self.write();
        ended(
            sqlx::query(sqlx::AssertSqlSafe(write))
                .bind(name)
                .bind(value)
                .execute(&self.pool)
                .await,
        )
    }
}

fn ended<T>(answer: sqlx::Result<T>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Accepted,
        Err(sqlx::Error::Database(error)) => panic!("{error}"),
        Err(_) => Outcome::Unknown,
    }
}

impl BehindRelay for Postgres {
    fn relay(&self) -> &Relay {
        &self.relay
    }
}

/// A fence in each row.
#[derive(Debug)]
pub(crate) struct RowsSubject {
    postgres: Postgres,
    rows: FencedRows,
}

impl RowsSubject {
    /// Runs a fenced statement for a row that is there.
    async fn run(
        &self,
        statement: &str,
        name: &str,
        value: Option<&str>,
        presented: Stamp,
    ) -> Outcome {
        if !self.accepts(name) {
            return Outcome::NoSuchName;
        }
        let Postgres { kept, pool, beside, .. } = &self.postgres;
        let row = format!("INSERT INTO {kept} (name) VALUES ($1) ON CONFLICT DO NOTHING");
        sqlx::query(sqlx::AssertSqlSafe(row)).bind(name).execute(beside).await.expect("a row");
        let query =
            sqlx::query(sqlx::AssertSqlSafe(statement)).bind(name).bind(i64::from(presented.fence));
        let query = query.bind(presented.lease.to_string());
        let query = if let Some(value) = value { query.bind(value) } else { query };
        // The relay may cut off the connection that the pool makes, too.
        let mut conn = match pool.acquire().await {
            Ok(conn) => conn,
            failed => return ended(failed),
        };
        let done = match query.execute(&mut *conn).await {
            Ok(done) => done,
            failed => return ended(failed),
        };
        if done.rows_affected() == 1 {
            return Outcome::Accepted;
        }
        match self.rows.why_unwritten(&mut conn, name, presented).await {
            Ok(Unwritten::Stale(stale)) => outcome::<()>(Err(GateError::Stale(stale))),
            Ok(other) => panic!("{name:?} {presented}: {other:?}"),
            Err(error) => outcome::<()>(Err(error)),
        }
    }
}

impl GateSubject for RowsSubject {
    fn start() -> Task<'static, Arc<dyn GateSubject>> {
        Box::pin(async {
            let (postgres, _) = Postgres::start().await;
            let rows = FencedRows::new(&postgres.kept, "name").expect("the names are names");
            sqlx::raw_sql(sqlx::AssertSqlSafe(rows.add_columns()))
                .execute(&postgres.beside)
                .await
                .expect("columns");
            Arc::new(Self { postgres, rows }) as _
        })
    }

    /// The limits are those of the user's key.
    fn accepts(&self, name: &str) -> bool {
        name.len() <= PostgresGate::MAX_RESOURCE_BYTES && !name.contains('\0')
    }

    fn write<'a>(&'a self, name: &'a str, value: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move {
            self.run(&self.rows.update("value = $4 -- the user's"), name, Some(value), presented)
                .await
        })
    }

    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move { self.run(&self.rows.advance(), name, None, presented).await })
    }

    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
        Box::pin(self.postgres.read(name))
    }

    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
        Box::pin(self.postgres.write_past(name, value))
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(&self.postgres)
    }
}

/// A table of fences, and the write in the same transaction.
#[derive(Debug)]
pub(crate) struct TableSubject {
    postgres: Postgres,
    gate: PostgresGate,
}

impl TableSubject {
    async fn write_gated(&self, name: &str, value: &str, presented: Stamp) -> Outcome {
        let Ok(mut tx) = self.postgres.pool.begin().await else { return Outcome::Failed };
        if let Err(error) = self.gate.admit_in(&mut tx, name, presented).await {
            return outcome::<()>(Err(error));
        }
        let write = self.postgres.write();
        let written =
            sqlx::query(sqlx::AssertSqlSafe(write)).bind(name).bind(value).execute(&mut *tx).await;
        if ended(written) != Outcome::Accepted {
            return Outcome::Failed;
        }
        ended(tx.commit().await)
    }
}

impl BehindRelay for TableSubject {
    fn relay(&self) -> &Relay {
        &self.postgres.relay
    }

    /// A gated write takes effect with its commit.
    fn takes_effect_by(&self, of: Stamp, gated: bool) -> String {
        if gated { "COMMIT".into() } else { of.lease.to_string() }
    }
}

impl GateSubject for TableSubject {
    fn start() -> Task<'static, Arc<dyn GateSubject>> {
        Box::pin(async {
            let (postgres, number) = Postgres::start().await;
            let table = FenceTable::new(&format!("fences_{number}")).expect("a name");
            let gate = PostgresGate::new(postgres.pool.clone()).table(table);
            gate.create_table().await.expect("a table");
            Arc::new(Self { postgres, gate }) as _
        })
    }

    fn accepts(&self, name: &str) -> bool {
        (1..=PostgresGate::MAX_RESOURCE_BYTES).contains(&name.len()) && !name.contains('\0')
    }

    fn write<'a>(&'a self, name: &'a str, value: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(self.write_gated(name, value, presented))
    }

    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move { outcome(self.gate.advance(name, presented).await) })
    }

    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
        Box::pin(self.postgres.read(name))
    }

    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
        Box::pin(self.postgres.write_past(name, value))
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(self)
    }
}
