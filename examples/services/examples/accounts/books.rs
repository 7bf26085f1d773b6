use std::fmt;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use leasehold::{
    Stamp,
    fencing::{FenceGate, GateError, TransactionConflict, postgres::PostgresGate, sqlx},
};
use leasehold_services::{Database, Failure};
use sqlx::PgPool;

/// The accounts in PostgreSQL. Each write stands behind the gate, in one transaction with it.
#[derive(Debug, Clone)]
pub(crate) struct Books {
    pool: PgPool,
    gate: PostgresGate,
}

/// `statement` has no unique key, which would hide that a job ran twice.
const TABLES: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS deposit (entry BIGSERIAL, account BIGINT NOT NULL, amount BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS total (id INT PRIMARY KEY, deposits BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS statement (period BIGINT NOT NULL, deposits BIGINT NOT NULL)",
];

const BALANCE: &str = "SELECT balance FROM account WHERE id = $1";
const PUT: &str = "INSERT INTO account VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET balance = $2";
const ENTER: &str = "INSERT INTO deposit (account, amount) VALUES ($1, $2)";
const ADD_UP: &str = "INSERT INTO total SELECT 1, coalesce(sum(amount), 0)::BIGINT FROM deposit \
                      ON CONFLICT (id) DO UPDATE SET deposits = excluded.deposits";
const STATE: &str =
    "INSERT INTO statement SELECT $1, coalesce(sum(amount), 0)::BIGINT FROM deposit";
const TOTAL: &str = "SELECT deposits FROM total";

impl Books {
    pub(crate) fn open(database: &Database) -> Self {
        let pool = database.pool();
        Self { gate: PostgresGate::new(pool.clone()), pool }
    }

    pub(crate) async fn make(&self) -> Result<(), Failure> {
        self.gate.create_table().await?;
        for statement in TABLES {
            sqlx::query(statement).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Pays into an account, and returns the balance. It reads before it writes, so it needs the lock of the
    /// account.
    pub(crate) async fn deposit(&self, id: i64, amount: i64, stamp: Stamp) -> Result<i64, Failed> {
        again(|| async {
            let mut tx = self.begin(&format!("account/{id}"), stamp).await?;
            let balance = sqlx::query_scalar(BALANCE).bind(id).fetch_optional(&mut *tx).await?;
            let balance: i64 = balance.unwrap_or(0) + amount;
            sqlx::query(PUT).bind(id).bind(balance).execute(&mut *tx).await?;
            sqlx::query(ENTER).bind(id).bind(amount).execute(&mut *tx).await?;
            commit(tx).await?;
            Ok(balance)
        })
        .await
    }

    pub(crate) async fn balance(&self, id: i64) -> Result<i64, Failed> {
        let balance = sqlx::query_scalar(BALANCE).bind(id).fetch_optional(&self.pool).await?;
        Ok(balance.unwrap_or(0))
    }

    /// Shuts a former leader out, before the new one does anything.
    pub(crate) async fn begin_term(&self, stamp: Stamp) -> Result<(), GateError> {
        self.gate.advance("total", stamp).await.map(drop)
    }

    /// Adds up all deposits: the work of the leader.
    pub(crate) async fn add_up(&self, stamp: Stamp) -> Result<(), Failed> {
        again(|| async {
            let mut tx = self.begin("total", stamp).await?;
            sqlx::query(ADD_UP).execute(&mut *tx).await?;
            commit(tx).await
        })
        .await
    }

    /// What the leader has added up last.
    pub(crate) async fn total(&self) -> Result<i64, Failed> {
        let total = sqlx::query_scalar(TOTAL).fetch_optional(&self.pool).await?;
        Ok(total.unwrap_or(0))
    }

    /// Writes the statement of a period: the job.
    pub(crate) async fn state(&self, period: i64, stamp: Stamp) -> Result<(), Failed> {
        again(|| async {
            let mut tx = self.begin(&format!("statement/{period}"), stamp).await?;
            sqlx::query(STATE).bind(period).execute(&mut *tx).await?;
            commit(tx).await
        })
        .await
    }

    /// Begins a transaction that refuses former holders: what is read in it is what they have left.
    async fn begin(
        &self,
        resource: &str,
        stamp: Stamp,
    ) -> Result<sqlx::PgTransaction<'static>, Failed> {
        let mut tx = self.pool.begin().await?;
        self.gate.admit_in(&mut tx, resource, stamp).await?;
        Ok(tx)
    }
}

/// Ends a transaction. An error before this leaves nothing written; one of the commit leaves it in doubt.
async fn commit(tx: sqlx::PgTransaction<'static>) -> Result<(), Failed> {
    tx.commit().await.map_err(|error| match Failed::from(error) {
        Failed::Database(error) => Failed::Commit(error),
        failed => failed,
    })
}

/// Repeats a transaction that the database has given up for another one. That says nothing about the lease.
async fn again<T, F>(attempt: impl Fn() -> F) -> Result<T, Failed>
where
    F: Future<Output = Result<T, Failed>>,
{
    loop {
        match attempt().await {
            Err(Failed::Gate(GateError::Conflict(_))) => {}
            done => return done,
        }
    }
}

/// Why something was not written, or is not known to be.
#[derive(Debug)]
pub(crate) enum Failed {
    Gate(GateError),
    /// Nothing was written.
    Database(sqlx::Error),
    /// It was written, or was not.
    Commit(sqlx::Error),
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let told = self.to_string();
        let text = match self {
            Self::Gate(error) => return error.into_response(),
            Self::Database(_) => "nothing was written",
            Self::Commit(_) => "look at the balance before you try again",
        };
        tracing::error!(error = told, "a request is answered with status 500");
        (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
    }
}

impl From<GateError> for Failed {
    fn from(error: GateError) -> Self {
        Self::Gate(error)
    }
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        match TransactionConflict::of(&error) {
            Some(conflict) => Self::Gate(conflict.into()),
            None => Self::Database(error),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(error) => write!(f, "{error}"),
            Self::Database(error) | Self::Commit(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Failed {}
