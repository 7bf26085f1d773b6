use leasehold::{
    Stamp,
    fencing::{postgres::PostgresGate, sqlx},
};
use leasehold_services::{Database, Failure, Refusal};
use sqlx::PgPool;

use super::{AMOUNT, Entries, Entry, resource};

/// Books in PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct PostgresBooks {
    pool: PgPool,
    gate: PostgresGate,
}

const TABLES: [&str; 5] = [
    "DROP TABLE IF EXISTS duplicate_submission_forms, duplicate_submission_total",
    "CREATE TABLE duplicate_submission_forms (form BIGINT PRIMARY KEY)",
    "CREATE TABLE duplicate_submission_total (total BIGINT NOT NULL)",
    "INSERT INTO duplicate_submission_total VALUES (0)",
    "DELETE FROM leasehold_fences WHERE resource LIKE 'forms/%'",
];

const ENTER: &str = "INSERT INTO duplicate_submission_forms VALUES ($1) ON CONFLICT DO NOTHING";
const ADD: &str = "UPDATE duplicate_submission_total SET total = total + $1";

impl PostgresBooks {
    pub(super) fn open(database: &Database) -> Self {
        let pool = database.pool();
        Self { gate: PostgresGate::new(pool.clone()), pool }
    }

    pub(super) async fn make(&self) -> Result<(), Failure> {
        self.gate.create_table().await?;
        for statement in TABLES {
            sqlx::query(statement).execute(&self.pool).await?;
        }
        Ok(())
    }

    pub(super) async fn enter(&self, form: u64, stamp: Stamp) -> Result<Entry, Failure> {
        loop {
            match self.try_enter(form, stamp).await {
                Ok(entry) => return Ok(entry),
                Err(Refusal::Stale) => return Ok(Entry::Refused),
                Err(Refusal::Conflict) => {}
                Err(Refusal::Failed(failure)) => return Err(failure),
            }
        }
    }

    /// The admission and the entry, or neither.
    async fn try_enter(&self, form: u64, stamp: Stamp) -> Result<Entry, Refusal> {
        let mut tx = self.pool.begin().await?;
        self.gate.admit_in(&mut tx, &resource(form), stamp).await?;
        let form = i64::try_from(form).unwrap_or(i64::MAX);
        let entered = sqlx::query(ENTER).bind(form).execute(&mut *tx).await?.rows_affected();
        if entered == 1 {
            let amount = i64::try_from(AMOUNT).unwrap_or(i64::MAX);
            sqlx::query(ADD).bind(amount).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(if entered == 1 { Entry::New } else { Entry::There })
    }

    pub(super) async fn read(&self) -> Result<Entries, Failure> {
        let forms: Vec<i64> =
            sqlx::query_scalar("SELECT form FROM duplicate_submission_forms ORDER BY form")
                .fetch_all(&self.pool)
                .await?;
        let total: i64 = sqlx::query_scalar("SELECT total FROM duplicate_submission_total")
            .fetch_one(&self.pool)
            .await?;
        let forms = forms.into_iter().map(u64::try_from).collect::<Result<_, _>>()?;
        Ok(Entries { forms, total: u64::try_from(total)? })
    }
}
