//! A database of its own for each test.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use leasehold_core::{AcquisitionId, Fence, RuntimeId, StoreErrorKind};
use leasehold_fencing::{
    GateError, StaleFence, Stamp,
    postgres::PostgresGate,
    sqlx::{self, PgPool, postgres::PgPoolOptions},
};
use leasehold_testkit::{Patience, PostgresServer};
use uuid::Uuid;

pub(crate) const KEY: &str = "stock/7";

pub(crate) struct Database {
    pub(crate) pool: PgPool,
    pub(crate) url: String,
    _server: Arc<PostgresServer>,
}

impl Database {
    pub(crate) async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = PostgresServer::shared();
        let name = format!("t{}_{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let admin = pool(&server.url()).await;
        run(&admin, &format!("CREATE DATABASE {name}")).await;
        admin.close().await;
        let url = server.url_of(&name);
        Self { pool: pool(&url).await, url, _server: server }
    }

    /// A database with a gate's table, and a table of values.
    pub(crate) async fn with_gate() -> (Self, PostgresGate) {
        let database = Self::new().await;
        let gate = PostgresGate::new(database.pool.clone());
        gate.create_table().await.unwrap();
        run(&database.pool, "CREATE TABLE stock (id INT PRIMARY KEY, value TEXT)").await;
        run(&database.pool, "INSERT INTO stock VALUES (7, 'untouched')").await;
        (database, gate)
    }

    pub(crate) async fn value(&self) -> String {
        let value = sqlx::query_scalar("SELECT value FROM stock WHERE id = 7");
        value.fetch_one(&self.pool).await.unwrap()
    }

    /// Waits until a session waits for another's lock.
    pub(crate) async fn until_somebody_waits(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let probe = async || {
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&self.pool).await.unwrap();
            (waiting > 0).then_some(())
        };
        let seen = Patience::of(Duration::from_secs(25)).until_async(probe).await;
        assert!(seen.is_some(), "nobody waits");
    }

    /// The watermark of [`KEY`] as text.
    pub(crate) async fn watermark(&self) -> Option<String> {
        let stamp = "SELECT fence || ' ' || lease FROM leasehold_fences WHERE resource = $1";
        sqlx::query_scalar(stamp).bind(KEY).fetch_optional(&self.pool).await.unwrap()
    }
}

async fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(8).connect(url).await.expect("the server answers")
}

pub(crate) async fn run(pool: &PgPool, statement: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
        .execute(pool)
        .await
        .unwrap_or_else(|e| panic!("{statement}: {e}"));
}

pub(crate) const WRITE: &str = "UPDATE stock SET value = $1 WHERE id = 7";

/// Admits and writes in one transaction, and commits it.
pub(crate) async fn write(
    gate: &PostgresGate,
    pool: &PgPool,
    value: &str,
    presented: Stamp,
) -> Result<(), GateError> {
    let mut tx = pool.begin().await.unwrap();
    gate.admit_in(&mut tx, KEY, presented).await?;
    sqlx::query(WRITE).bind(value).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    Ok(())
}

pub(crate) fn stamp(fence: u64, lease: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(1)), lease);
    Stamp::new(Fence::try_from(fence).unwrap(), lease)
}

pub(crate) fn stale(presented: Stamp, highest: Stamp) -> GateError {
    StaleFence { presented, highest, resource: KEY.into() }.into()
}

pub(crate) fn store_kind<T: std::fmt::Debug>(outcome: Result<T, GateError>) -> StoreErrorKind {
    match outcome {
        Err(GateError::Store(error)) => {
            assert!(error.to_string().contains("the gate of \""), "{error}");
            error.kind()
        }
        other => panic!("not a failure of the store: {other:?}"),
    }
}
