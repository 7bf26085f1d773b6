use leasehold::{
    Stamp,
    fencing::{FenceGate, GateError, postgres::PostgresGate, sqlx},
};
use leasehold_services::{Database, Failure, Refusal};
use sqlx::PgPool;

use super::resource;
use crate::sale::{ARTICLES, Books, Look, PIECES, Sale};

/// A shelf in PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct PostgresShelf {
    pool: PgPool,
    gate: PostgresGate,
}

const TABLES: [&str; 5] = [
    "DROP TABLE IF EXISTS flash_sale_articles, flash_sale_sales, flash_sale_refusals",
    "CREATE TABLE flash_sale_articles (article BIGINT PRIMARY KEY, pieces BIGINT NOT NULL)",
    "CREATE TABLE flash_sale_sales (article BIGINT, shop BIGINT, buyer BIGINT, fence BIGINT)",
    "CREATE TABLE flash_sale_refusals (article BIGINT)",
    "DELETE FROM leasehold_fences WHERE resource LIKE 'article/%'",
];

impl PostgresShelf {
    pub(crate) fn new(database: &Database) -> Self {
        let pool = database.pool();
        Self { gate: PostgresGate::new(pool.clone()), pool }
    }

    /// Makes the tables anew, with all pieces.
    pub(crate) async fn stock(&self) -> Result<(), Failure> {
        self.gate.create_table().await?;
        for statement in TABLES {
            sqlx::query(statement).execute(&self.pool).await?;
        }
        for article in 0..ARTICLES {
            sqlx::query("INSERT INTO flash_sale_articles VALUES ($1, $2)")
                .bind(i64::try_from(article)?)
                .bind(i64::try_from(PIECES)?)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    pub(super) async fn look(&self, article: usize, stamp: Stamp) -> Result<Look, Failure> {
        match self.gate.advance(&resource(article), stamp).await {
            Ok(_) => {}
            Err(GateError::Stale(_)) => return self.shut_out(article, Look::ShutOut).await,
            Err(error) => return Err(error.into()),
        }
        let (left,): (i64,) =
            sqlx::query_as("SELECT pieces FROM flash_sale_articles WHERE article = $1")
                .bind(i64::try_from(article)?)
                .fetch_one(&self.pool)
                .await?;
        Ok(Look::Left(u64::try_from(left)?))
    }

    pub(super) async fn book(
        &self,
        article: usize,
        left: u64,
        buyer: (usize, usize),
        stamp: Stamp,
    ) -> Result<Sale, Failure> {
        loop {
            match self.try_book(article, left, buyer, stamp).await {
                Ok(()) => return Ok(Sale::Booked),
                Err(Refusal::Stale) => return self.shut_out(article, Sale::ShutOut).await,
                Err(Refusal::Conflict) => {}
                Err(Refusal::Failed(failure)) => return Err(failure),
            }
        }
    }

    /// The admission and the entries, or neither.
    async fn try_book(
        &self,
        article: usize,
        left: u64,
        (shop, buyer): (usize, usize),
        stamp: Stamp,
    ) -> Result<(), Refusal> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let mut tx = self.pool.begin().await?;
        self.gate.admit_in(&mut tx, &resource(article), stamp).await?;
        sqlx::query("UPDATE flash_sale_articles SET pieces = $2 WHERE article = $1")
            .bind(number(article))
            .bind(i64::try_from(left).unwrap_or(i64::MAX))
            .execute(&mut *tx)
            .await?;
        sqlx::query("INSERT INTO flash_sale_sales VALUES ($1, $2, $3, $4)")
            .bind(number(article))
            .bind(number(shop))
            .bind(number(buyer))
            .bind(stamp.fence)
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }

    async fn shut_out<T>(&self, article: usize, answer: T) -> Result<T, Failure> {
        sqlx::query("INSERT INTO flash_sale_refusals VALUES ($1)")
            .bind(i64::try_from(article)?)
            .execute(&self.pool)
            .await?;
        Ok(answer)
    }

    pub(crate) async fn books(&self) -> Result<Books, Failure> {
        let left: Vec<(i64,)> =
            sqlx::query_as("SELECT pieces FROM flash_sale_articles ORDER BY article")
                .fetch_all(&self.pool)
                .await?;
        let sales: Vec<(i64, i64, i64)> =
            sqlx::query_as("SELECT article, shop, buyer FROM flash_sale_sales")
                .fetch_all(&self.pool)
                .await?;
        let (refused,): (i64,) = sqlx::query_as("SELECT count(*) FROM flash_sale_refusals")
            .fetch_one(&self.pool)
            .await?;
        let number = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Books {
            left: left.into_iter().map(|(left,)| number(left) as u64).collect(),
            sales: sales
                .into_iter()
                .map(|(article, shop, buyer)| (number(article), number(shop), number(buyer)))
                .collect(),
            refused: u64::try_from(refused)?,
        })
    }
}
