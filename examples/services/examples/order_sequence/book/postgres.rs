use leasehold::{
    Stamp,
    fencing::{FenceGate, GateError, postgres::PostgresGate, sqlx},
};
use leasehold_services::{Database, Failure, Refusal};
use sqlx::PgPool;

use super::{Entry, resource};

/// A book in PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct PostgresBook {
    pool: PgPool,
    gate: PostgresGate,
}

/// Without a unique key, which would hide a missing fence.
const TABLES: [&str; 3] = [
    "DROP TABLE IF EXISTS order_sequence_book",
    "CREATE TABLE order_sequence_book (entry BIGSERIAL, customer BIGINT, number BIGINT)",
    "DELETE FROM leasehold_fences WHERE resource LIKE 'customer/%'",
];

const LAST: &str = "SELECT coalesce(max(number), 0) FROM order_sequence_book WHERE customer = $1";
const ENTER: &str = "INSERT INTO order_sequence_book (customer, number) VALUES ($1, $2)";
const JOURNAL: &str = "SELECT customer, number FROM order_sequence_book ORDER BY entry";

impl PostgresBook {
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

    pub(super) async fn last(&self, customer: u64, stamp: Stamp) -> Result<Option<u64>, Failure> {
        match self.gate.advance(&resource(customer), stamp).await {
            Ok(_) => {}
            Err(GateError::Stale(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let last = sqlx::query_scalar(LAST).bind(i64::try_from(customer)?);
        let last: i64 = last.fetch_one(&self.pool).await?;
        Ok(Some(u64::try_from(last)?))
    }

    pub(super) async fn enter(
        &self,
        (customer, number): (u64, u64),
        stamp: Stamp,
    ) -> Result<Entry, Failure> {
        let order = (i64::try_from(customer)?, i64::try_from(number)?);
        loop {
            match self.try_enter(&resource(customer), order, stamp).await {
                Ok(()) => return Ok(Entry::Done),
                Err(Refusal::Stale) => return Ok(Entry::Refused),
                Err(Refusal::Conflict) => {}
                Err(Refusal::Failed(failure)) => return Err(failure),
            }
        }
    }

    /// The admission and the order, or neither.
    async fn try_enter(
        &self,
        resource: &str,
        (customer, number): (i64, i64),
        stamp: Stamp,
    ) -> Result<(), Refusal> {
        let mut tx = self.pool.begin().await?;
        self.gate.admit_in(&mut tx, resource, stamp).await?;
        sqlx::query(ENTER).bind(customer).bind(number).execute(&mut *tx).await?;
        Ok(tx.commit().await?)
    }

    pub(super) async fn journal(&self) -> Result<Vec<(u64, u64)>, Failure> {
        let rows: Vec<(i64, i64)> = sqlx::query_as(JOURNAL).fetch_all(&self.pool).await?;
        let order = |(customer, number)| Ok((u64::try_from(customer)?, u64::try_from(number)?));
        rows.into_iter().map(order).collect()
    }
}
