use std::sync::Arc;

use leasehold::fencing::{
    postgres::{FencedRows, PostgresGate},
    sqlx::{self, PgPool, postgres::PgPoolOptions},
};

use super::Subject;
use crate::{Failure, round::TASKS, stamps};

/// One statement behind a row's own fence, and a transaction behind the table of fences.
pub(super) async fn subjects(url: &str) -> Result<[Subject; 2], Failure> {
    let connections = u32::try_from(TASKS)?;
    let pool = PgPoolOptions::new().max_connections(connections).connect(url).await?;
    let (gate, rows) = (PostgresGate::new(pool.clone()), FencedRows::new("article", "id")?);
    gate.create_table().await?;
    sqlx::query("CREATE TABLE article (id BIGINT PRIMARY KEY, sold BIGINT NOT NULL DEFAULT 0)")
        .execute(&pool)
        .await?;
    sqlx::query(sqlx::AssertSqlSafe(rows.add_columns())).execute(&pool).await?;
    // Those below 100 are written without a gate.
    sqlx::query("INSERT INTO article (id) SELECT generate_series(0, 200)").execute(&pool).await?;
    Ok([one_statement(&pool, &rows), transaction(&pool, &gate)])
}

fn one_statement(pool: &PgPool, rows: &FencedRows) -> Subject {
    let (plain, gated) = (pool.clone(), pool.clone());
    let update: Arc<str> = rows.update("sold = sold + $4").into();
    Subject {
        name: "postgres, rows",
        plain: Arc::new(move |task| {
            let pool = plain.clone();
            Box::pin(async move {
                let update = sqlx::query("UPDATE article SET sold = sold + $2 WHERE id = $1");
                update.bind(i64::try_from(task)?).bind(1_i64).execute(&pool).await?;
                Ok(1)
            })
        }),
        gated: Arc::new(move |task| {
            let (pool, update) = (gated.clone(), Arc::clone(&update));
            Box::pin(async move {
                let stamp = stamps::of(task);
                let update =
                    sqlx::query(sqlx::AssertSqlSafe(update)).bind(i64::try_from(task + 100)?);
                let update = update.bind(i64::from(stamp.fence)).bind(stamp.lease.to_string());
                let done = update.bind(1_i64).execute(&pool).await?;
                Ok(done.rows_affected())
            })
        }),
    }
}

fn transaction(pool: &PgPool, gate: &PostgresGate) -> Subject {
    const UPDATE: &str = "UPDATE article SET sold = sold + 1 WHERE id = $1";
    let (plain, gated, gate) = (pool.clone(), pool.clone(), gate.clone());
    Subject {
        name: "postgres, transaction",
        plain: Arc::new(move |task| {
            let pool = plain.clone();
            Box::pin(async move {
                let mut tx = pool.begin().await?;
                sqlx::query(UPDATE).bind(i64::try_from(task)?).execute(&mut *tx).await?;
                tx.commit().await?;
                Ok(1)
            })
        }),
        gated: Arc::new(move |task| {
            let (pool, gate) = (gated.clone(), gate.clone());
            Box::pin(async move {
                let mut tx = pool.begin().await?;
                gate.admit_in(&mut tx, &format!("article/{task}"), stamps::of(task)).await?;
                sqlx::query(UPDATE).bind(i64::try_from(task + 100)?).execute(&mut *tx).await?;
                tx.commit().await?;
                Ok(1)
            })
        }),
    }
}
