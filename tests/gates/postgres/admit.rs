use leasehold_fencing::{
    Admitted, FenceGate, GateError,
    postgres::{FenceTable, PostgresGate},
    sqlx::{self, PgPool},
};
use tokio::task::JoinSet;

use super::support::{Database, KEY, WRITE, run, stale, stamp, write};

/// The services that create the table at the same time, and how often they do.
const CREATORS: usize = 8;
const CREATIONS: usize = 100;

#[tokio::test]
async fn a_write_takes_newer_fences_and_equal_ones_of_the_same_lease() {
    let (database, gate) = Database::with_gate().await;
    let pool = &database.pool;
    // One digit more is newer: fences are compared as numbers.
    let (older, newer, same_fence) = (stamp(9, 1), stamp(10, 2), stamp(10, 3));
    for (presented, admitted) in [
        (older, Ok(Admitted::First)),
        (older, Ok(Admitted::Again)),
        (newer, Ok(Admitted::Newer)),
        (older, Err(stale(older, newer))),
        (same_fence, Err(stale(same_fence, newer))),
        (newer, Ok(Admitted::Again)),
        (newer, Ok(Admitted::Again)),
    ] {
        let mut tx = pool.begin().await.unwrap();
        assert_eq!(gate.admit_in(&mut tx, KEY, presented).await, admitted, "{presented}");
        tx.commit().await.unwrap();
    }
    assert_eq!(database.watermark().await, Some(newer.to_string()));

    assert_eq!(write(&gate, pool, "newer", newer).await, Ok(()));
    assert_eq!(write(&gate, pool, "stale", older).await, Err(stale(older, newer)));
    assert_eq!(write(&gate, pool, "stale", same_fence).await, Err(stale(same_fence, newer)));
    assert_eq!(database.value().await, "newer");
}

#[tokio::test]
async fn a_rollback_undoes_the_admission_with_the_write() {
    let (database, gate) = Database::with_gate().await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let mut tx = database.pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut tx, KEY, newer).await, Ok(Admitted::First));
    sqlx::query(WRITE).bind("undone").execute(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(database.watermark().await, None);
    assert_eq!(write(&gate, &database.pool, "older", older).await, Ok(()));

    // So does that of a savepoint, and what came before it stays.
    let mut tx = database.pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut tx, KEY, older).await, Ok(Admitted::Again));
    let mut inner = sqlx::Connection::begin(&mut *tx).await.unwrap();
    assert_eq!(gate.admit_in(&mut inner, KEY, newer).await, Ok(Admitted::Newer));
    inner.rollback().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(database.watermark().await, Some(older.to_string()));
    assert_eq!(database.value().await, "older");
}

#[tokio::test]
async fn racing_writers_never_write_behind_a_newer_one() {
    const WRITERS: u64 = 6;
    const ROUNDS: u64 = 30;
    let (database, gate) = Database::with_gate().await;
    run(&database.pool, "CREATE TABLE log (place SERIAL, fence BIGINT)").await;
    let mut writers = JoinSet::new();
    for writer in 1..=WRITERS {
        let (gate, pool) = (gate.clone(), database.pool.clone());
        writers.spawn(async move {
            let mut accepted = Vec::new();
            for round in 0..ROUNDS {
                // Every writer takes every sixth fence, so they overtake each other.
                let fence = round * WRITERS + writer;
                let mut tx = pool.begin().await.unwrap();
                match gate.admit_in(&mut tx, KEY, stamp(fence, fence)).await {
                    Ok(_) => {
                        let insert = sqlx::query("INSERT INTO log (fence) VALUES ($1)");
                        let fence = i64::try_from(fence).unwrap();
                        insert.bind(fence).execute(&mut *tx).await.unwrap();
                        tx.commit().await.unwrap();
                        accepted.push(fence);
                    }
                    Err(GateError::Stale(stale)) => assert!(stale.highest.fence.get() > fence),
                    Err(error) => panic!("{error}"),
                }
            }
            accepted
        });
    }
    let mut accepted = writers.join_all().await.concat();
    accepted.sort_unstable();
    let log = sqlx::query_scalar("SELECT fence FROM log ORDER BY place");
    let written: Vec<i64> = log.fetch_all(&database.pool).await.unwrap();
    assert!(written.is_sorted(), "{written:?}");
    assert_eq!(written, accepted);
    assert_eq!(written.last(), i64::try_from(WRITERS * ROUNDS).ok().as_ref());
}

#[tokio::test]
async fn first_admissions_that_race_agree_on_one_first() {
    let (_database, gate) = Database::with_gate().await;
    let mut racing = JoinSet::new();
    for fence in 1..=8 {
        let gate = gate.clone();
        racing.spawn(async move { gate.advance(KEY, stamp(fence, fence)).await });
    }
    let outcomes = racing.join_all().await;
    let firsts = outcomes.iter().filter(|outcome| **outcome == Ok(Admitted::First)).count();
    assert_eq!(firsts, 1, "{outcomes:?}");
    let known =
        |outcome: &Result<Admitted, GateError>| matches!(outcome, Ok(_) | Err(GateError::Stale(_)));
    assert!(outcomes.iter().all(known), "{outcomes:?}");
    assert_eq!(gate.advance(KEY, stamp(8, 8)).await, Ok(Admitted::Again));
}

#[tokio::test]
async fn services_that_create_the_table_at_once_all_succeed() {
    let (database, gate) = Database::with_gate().await;
    let open = async |pool: PgPool| pool.acquire().await.unwrap();
    let connections: JoinSet<_> =
        [(); CREATORS].map(|()| open(database.pool.clone())).into_iter().collect();
    // All are open from here on: how they meet depends on the statements alone.
    drop(connections.join_all().await);
    for _ in 0..CREATIONS {
        run(&database.pool, "DROP TABLE leasehold_fences").await;
        let create = async |gate: PostgresGate| gate.create_table().await;
        let creating: JoinSet<_> =
            [(); CREATORS].map(|()| create(gate.clone())).into_iter().collect();
        assert_eq!(creating.join_all().await, [const { Ok(()) }; CREATORS]);
    }
}

#[tokio::test]
async fn the_table_can_have_another_name_and_schema() {
    let database = Database::new().await;
    run(&database.pool, "CREATE SCHEMA \"Locks\"").await;
    let table = FenceTable::new("Locks.fences").unwrap();
    let gate = PostgresGate::new(database.pool.clone()).table(table);
    assert_eq!(gate.create_table().await, Ok(()));
    assert_eq!(gate.create_table().await, Ok(()));
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(gate.advance(KEY, newer).await, Ok(Admitted::First));
    assert_eq!(gate.advance(KEY, older).await, Err(stale(older, newer)));
    let rows = sqlx::query_scalar("SELECT count(*) FROM \"Locks\".fences");
    assert_eq!(rows.fetch_one(&database.pool).await.ok(), Some(1_i64));
}

#[tokio::test]
async fn a_refusal_that_is_overlooked_cannot_be_committed() {
    let (database, gate) = Database::with_gate().await;
    let pool = &database.pool;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(write(&gate, pool, "newer", newer).await, Ok(()));
    let too_long = "a".repeat(PostgresGate::MAX_RESOURCE_BYTES + 1);
    for resource in [KEY, "", "a\0", &too_long] {
        let mut tx = pool.begin().await.unwrap();
        assert!(gate.admit_in(&mut tx, resource, older).await.is_err());
        // The caller looks away.
        let wrote = sqlx::query(WRITE).bind("stale").execute(&mut *tx).await;
        let _ = tx.commit().await;
        assert_eq!(database.value().await, "newer", "{resource:?}");
        assert!(wrote.is_err(), "{resource:?}");
    }

    // A caller who looks may go on without what the savepoint was for.
    let mut tx = pool.begin().await.unwrap();
    let mut inner = sqlx::Connection::begin(&mut *tx).await.unwrap();
    assert_eq!(gate.admit_in(&mut inner, KEY, older).await, Err(stale(older, newer)));
    inner.rollback().await.unwrap();
    assert_eq!(gate.admit_in(&mut tx, KEY, newer).await, Ok(Admitted::Again));
    sqlx::query(WRITE).bind("newest").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(database.value().await, "newest");
}
