use leasehold_fencing::{
    Admitted, ConflictKind, FenceGate, GateError, TransactionConflict,
    postgres::PostgresGate,
    sqlx::{self, PgPool, Postgres, Transaction, postgres::PgPoolOptions},
};
use leasehold_testkit::Patience;
use tokio::task::JoinSet;

use super::support::{Database, KEY, WRITE, run, stamp, write};

async fn serializable(pool: &PgPool) -> Transaction<'static, Postgres> {
    pool.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap()
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, GateError>) -> ConflictKind {
    match outcome {
        Err(GateError::Conflict(conflict)) => {
            let said = conflict.to_string();
            assert!(said.contains("again with the same stamp"), "{said}");
            conflict.kind
        }
        other => panic!("not a conflict: {other:?}"),
    }
}

#[tokio::test]
async fn a_snapshot_from_before_an_admission_is_a_conflict_and_not_a_stale_fence() {
    let (database, gate) = Database::with_gate().await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(write(&gate, &database.pool, "older", older).await, Ok(()));
    // The one that wrote meanwhile: a newer holder, the holder itself, or one that is older.
    for (meanwhile, presented) in [(older, older), (newer, newer), (newer, stamp(43, 3))] {
        let mut tx = serializable(&database.pool).await;
        let read = "SELECT value FROM stock WHERE id = 7";
        sqlx::query(read).fetch_one(&mut *tx).await.unwrap();
        assert_eq!(write(&gate, &database.pool, "meanwhile", meanwhile).await, Ok(()));
        let admitted = gate.admit_in(&mut tx, KEY, presented).await;
        assert_eq!(kind(admitted), ConflictKind::Serialization);
        tx.rollback().await.unwrap();

        let mut again = serializable(&database.pool).await;
        assert!(gate.admit_in(&mut again, KEY, presented).await.is_ok());
    }
}

#[tokio::test]
async fn a_conflict_at_the_commit_is_told_from_other_errors() {
    let (database, gate) = Database::with_gate().await;
    run(&database.pool, "INSERT INTO stock VALUES (8, 'b')").await;
    // Write skew: each reads what the other writes.
    let [mut one, mut other] =
        [serializable(&database.pool).await, serializable(&database.pool).await];
    for (tx, lease, id) in [(&mut one, 1, 8), (&mut other, 2, 7)] {
        let resource = format!("stock/{id}");
        assert_eq!(gate.admit_in(tx, &resource, stamp(41, lease)).await, Ok(Admitted::First));
        sqlx::query("SELECT sum(length(value)) FROM stock").fetch_one(&mut **tx).await.unwrap();
    }
    sqlx::query("UPDATE stock SET value = 'x' WHERE id = 8").execute(&mut *one).await.unwrap();
    let skewed = sqlx::query("UPDATE stock SET value = 'y' WHERE id = 7").execute(&mut *other);
    let skewed = skewed.await.map(drop);
    one.commit().await.unwrap();
    let error = match skewed {
        Ok(()) => other.commit().await.unwrap_err(),
        Err(error) => error,
    };
    let conflict = TransactionConflict::of(&error).expect("a conflict");
    assert_eq!(conflict.kind, ConflictKind::Serialization);
    assert_eq!(TransactionConflict::of(&sqlx::Error::RowNotFound), None);
    let syntax = sqlx::query("SELEKT").execute(&database.pool).await.unwrap_err();
    assert_eq!(TransactionConflict::of(&syntax), None);
}

#[tokio::test]
async fn admissions_in_different_orders_end_in_a_deadlock_that_is_told() {
    let (database, gate) = Database::with_gate().await;
    let admit = async |first: &str, second: &str, lease| {
        let mut tx = database.pool.begin().await.unwrap();
        gate.admit_in(&mut tx, first, stamp(41, lease)).await?;
        until_admitted(&gate, &database.pool, second).await;
        gate.admit_in(&mut tx, second, stamp(42, lease)).await?;
        tx.commit().await.unwrap();
        Ok::<_, GateError>(())
    };
    let (one, other) = tokio::join!(admit("a", "b", 1), admit("b", "a", 2));
    let [given_up, went_on] = if one.is_err() { [one, other] } else { [other, one] };
    assert_eq!(kind(given_up), ConflictKind::Deadlock);
    assert_eq!(went_on, Ok(()));
}

/// Waits until another transaction has locked the watermark of a resource that has none yet.
async fn until_admitted(gate: &PostgresGate, pool: &PgPool, resource: &str) {
    let probe = async || {
        let mut tx = pool.begin().await.unwrap();
        run_in(&mut tx, "SET LOCAL lock_timeout = '5ms'").await;
        gate.admit_in(&mut tx, resource, stamp(1, 9)).await.is_err().then_some(())
    };
    let seen = Patience::of(std::time::Duration::from_secs(25)).until_async(probe).await;
    assert!(seen.is_some(), "nobody admits to {resource}");
}

async fn run_in(tx: &mut Transaction<'_, Postgres>, statement: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut **tx).await.unwrap();
}

#[tokio::test]
async fn serializable_writers_that_repeat_lose_no_increment() {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 10;
    let (database, gate) = Database::with_gate().await;
    run(&database.pool, "UPDATE stock SET value = '0'").await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (gate, pool) = (gate.clone(), database.pool.clone());
        writers.spawn(async move {
            let mut repeats = 0;
            for _ in 0..WRITES {
                while let Err(error) = increment(&gate, &pool).await {
                    assert!(error, "only conflicts may happen");
                    repeats += 1;
                }
            }
            repeats
        });
    }
    let repeats: u64 = writers.join_all().await.into_iter().sum();
    assert_eq!(database.value().await, (WRITERS * WRITES).to_string(), "{repeats} repeats");
}

/// One increment under one lease; an error says whether it was a conflict.
async fn increment(gate: &PostgresGate, pool: &PgPool) -> Result<(), bool> {
    let conflict = |error: sqlx::Error| TransactionConflict::of(&error).is_some();
    let mut tx = serializable(pool).await;
    match gate.admit_in(&mut tx, KEY, stamp(41, 1)).await {
        Ok(_) => {}
        Err(GateError::Conflict(_)) => return Err(true),
        Err(error) => panic!("{error}"),
    }
    let read = sqlx::query_scalar("SELECT value FROM stock WHERE id = 7");
    let value: String = read.fetch_one(&mut *tx).await.map_err(conflict)?;
    let next = (value.parse::<u64>().unwrap() + 1).to_string();
    sqlx::query(WRITE).bind(next).execute(&mut *tx).await.map_err(conflict)?;
    tx.commit().await.map_err(conflict)
}

#[tokio::test]
async fn an_admission_of_its_own_repeats_itself() {
    let (database, _) = Database::with_gate().await;
    let isolation = [("default_transaction_isolation", "serializable")];
    let options = database.url.parse::<sqlx::postgres::PgConnectOptions>().unwrap();
    let options = options.options(isolation);
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    let gate = PostgresGate::new(pool);
    let mut racing = JoinSet::new();
    for fence in 1..=24 {
        let gate = gate.clone();
        racing.spawn(async move { gate.advance(KEY, stamp(fence, fence)).await });
    }
    for outcome in racing.join_all().await {
        assert!(matches!(outcome, Ok(_) | Err(GateError::Stale(_))), "{outcome:?}");
    }
    assert_eq!(gate.advance(KEY, stamp(24, 24)).await, Ok(Admitted::Again));
}
