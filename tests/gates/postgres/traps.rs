//! The traps that the module's documentation warns of, each with the damage that it does.

use leasehold_core::StoreErrorKind::Definite;
use leasehold_fencing::{
    Admitted, FenceGate,
    postgres::{FencedRows, PostgresGate, Unwritten},
    sqlx::{
        self, PgPool,
        postgres::{PgConnectOptions, PgPoolOptions},
    },
};

use super::support::{Database, KEY, WRITE, run, stale, stamp, store_kind, write};

async fn orders() -> (Database, FencedRows) {
    let database = Database::new().await;
    run(&database.pool, "CREATE TABLE orders (id BIGINT PRIMARY KEY)").await;
    let orders = FencedRows::new("orders", "id").unwrap();
    run(&database.pool, &orders.add_columns()).await;
    run(&database.pool, "INSERT INTO orders (id) VALUES (7)").await;
    (database, orders)
}

/// How many rows a statement writes for a fence and the lease of a number.
async fn rows(pool: &PgPool, statement: &str, fence: u64, lease: u64) -> u64 {
    let presented = stamp(fence, lease);
    let query =
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(7_i64).bind(i64::from(presented.fence));
    query.bind(presented.lease.to_string()).execute(pool).await.unwrap().rows_affected()
}

#[tokio::test]
async fn less_or_equal_lets_another_lease_in_and_less_refuses_the_same_one() {
    let (database, orders) = orders().await;
    let pool = &database.pool;
    let [or_equal, less] = ["<=", "<"].map(|compares| {
        let set = "UPDATE orders SET fence = $2, lease = $3 WHERE id = $1 AND fence";
        format!("{set} {compares} $2")
    });
    assert_eq!(rows(pool, &orders.advance(), 41, 1).await, 1);
    assert_eq!(rows(pool, &orders.advance(), 41, 2).await, 0);
    assert_eq!(rows(pool, &orders.advance(), 41, 1).await, 1);
    assert_eq!(rows(pool, &less, 41, 1).await, 0);
    assert_eq!(rows(pool, &or_equal, 41, 2).await, 1);
}

#[tokio::test]
async fn a_statement_that_looks_at_itself_sees_the_row_as_it_was() {
    let (database, orders) = orders().await;
    assert_eq!(rows(&database.pool, &orders.advance(), 40, 1).await, 1);
    let mut tx = database.pool.begin().await.unwrap();
    let newer = "UPDATE orders SET fence = 42, lease = $1 WHERE id = 7";
    sqlx::query(newer).bind(stamp(42, 2).lease.to_string()).execute(&mut *tx).await.unwrap();
    let pool = database.pool.clone();
    let advance = orders.advance();
    let waiting = tokio::spawn(async move {
        let both = format!(
            "WITH written AS ({advance} RETURNING 1) \
             SELECT (SELECT count(*) FROM written), fence FROM orders"
        );
        let presented = stamp(41, 3);
        let query =
            sqlx::query_as(sqlx::AssertSqlSafe(both)).bind(7_i64).bind(i64::from(presented.fence));
        let told: (i64, i64) =
            query.bind(presented.lease.to_string()).fetch_one(&pool).await.unwrap();
        told
    });
    database.until_somebody_waits().await;
    tx.commit().await.unwrap();
    // Refused by 42, and told 40: as if it had not been stale.
    assert_eq!(waiting.await.unwrap(), (0, 40));
    let mut conn = database.pool.acquire().await.unwrap();
    let why = orders.why_unwritten(&mut conn, 7_i64, stamp(41, 3)).await;
    assert!(matches!(why, Ok(Unwritten::Stale(stale)) if stale.highest == stamp(42, 2)));
}

#[tokio::test]
async fn an_admission_in_another_transaction_than_the_write_guards_nothing() {
    let (database, gate) = Database::with_gate().await;
    let (paused, successor) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(gate.admit(KEY, paused).await, Ok(Admitted::First));
    assert_eq!(write(&gate, &database.pool, "successor", successor).await, Ok(()));
    sqlx::query(WRITE).bind("stale").execute(&database.pool).await.unwrap();
    assert_eq!(database.value().await, "stale");
}

#[tokio::test]
async fn asking_for_the_current_fence_gives_a_paused_holder_that_of_its_successor() {
    let (database, gate) = Database::with_gate().await;
    let (paused, current) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(write(&gate, &database.pool, "successor", current).await, Ok(()));
    assert_eq!(write(&gate, &database.pool, "x", paused).await, Err(stale(paused, current)));
    assert_eq!(write(&gate, &database.pool, "stale", current).await, Ok(()));
    assert_eq!(database.value().await, "stale");
}

#[tokio::test]
async fn a_deleted_row_forgets_its_fence_and_a_table_of_fences_does_not() {
    let (database, orders) = orders().await;
    assert_eq!(rows(&database.pool, &orders.advance(), 42, 2).await, 1);
    run(&database.pool, "DELETE FROM orders; INSERT INTO orders (id) VALUES (7)").await;
    assert_eq!(rows(&database.pool, &orders.advance(), 41, 1).await, 1);

    let (database, gate) = Database::with_gate().await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(gate.advance(KEY, newer).await, Ok(Admitted::First));
    run(&database.pool, "DELETE FROM stock").await;
    assert_eq!(gate.advance(KEY, older).await, Err(stale(older, newer)));
}

#[tokio::test]
async fn what_was_read_before_the_admission_may_be_old() {
    let (database, gate) = Database::with_gate().await;
    let (older, newer, newest) = (stamp(41, 1), stamp(42, 2), stamp(43, 3));
    let read = "SELECT value FROM stock WHERE id = 7";
    let mut tx = database.pool.begin().await.unwrap();
    let seen: String = sqlx::query_scalar(read).fetch_one(&mut *tx).await.unwrap();
    assert_eq!(write(&gate, &database.pool, "late", older).await, Ok(()));
    assert_eq!(gate.admit_in(&mut tx, KEY, newer).await, Ok(Admitted::Newer));
    sqlx::query(WRITE).bind(&seen).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(database.value().await, "untouched", "the late write is overwritten unseen");

    // One that advances first reads what stays.
    assert_eq!(gate.advance(KEY, newest).await, Ok(Admitted::Newer));
    assert_eq!(write(&gate, &database.pool, "late", newer).await, Err(stale(newer, newest)));
}

/// The damage of a statement that is put together on one line.
#[tokio::test]
async fn a_comment_behind_the_assignments_comments_the_condition_out() {
    let (database, orders) = orders().await;
    run(&database.pool, "ALTER TABLE orders ADD COLUMN state TEXT").await;
    run(&database.pool, "INSERT INTO orders (id) VALUES (8), (9)").await;
    let assignments = "state = 'late' -- 'paid' or 'void'";
    let one_line = format!(
        "UPDATE orders SET {assignments}, fence = $2, lease = $3 WHERE id = $1 AND {}",
        orders.condition()
    );
    assert_eq!(rows(&database.pool, &orders.update("state = 'newer'"), 42, 2).await, 1);
    assert_eq!(rows(&database.pool, &one_line, 41, 1).await, 3);
    assert_eq!(rows(&database.pool, &orders.update(assignments), 41, 1).await, 0);
}

#[tokio::test]
async fn a_savepoint_that_is_rolled_back_takes_the_admission_with_it() {
    let (database, gate) = Database::with_gate().await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let mut tx = database.pool.begin().await.unwrap();
    let mut inner = sqlx::Connection::begin(&mut *tx).await.unwrap();
    assert_eq!(gate.admit_in(&mut inner, KEY, older).await, Ok(Admitted::First));
    inner.rollback().await.unwrap();
    assert_eq!(write(&gate, &database.pool, "newer", newer).await, Ok(()));
    sqlx::query(WRITE).bind("stale").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(database.value().await, "stale");
}

#[tokio::test]
async fn a_sub_query_sees_what_was_there_before_the_statement_waited() {
    let (database, orders) = orders().await;
    run(&database.pool, "ALTER TABLE orders ADD COLUMN price INT").await;
    run(&database.pool, "CREATE TABLE price AS SELECT 1 AS price").await;
    let mut tx = database.pool.begin().await.unwrap();
    let holds = sqlx::query("UPDATE orders SET fence = 41, lease = $1 WHERE id = 7");
    holds.bind(stamp(41, 1).lease.to_string()).execute(&mut *tx).await.unwrap();
    sqlx::query("UPDATE price SET price = 2").execute(&mut *tx).await.unwrap();
    let (pool, update) =
        (database.pool.clone(), orders.update("price = (SELECT price FROM price)"));
    let waiting = tokio::spawn(async move { rows(&pool, &update, 42, 2).await });
    database.until_somebody_waits().await;
    tx.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap(), 1);
    let price = async || -> i32 {
        let price = sqlx::query_scalar("SELECT price FROM orders WHERE id = 7");
        price.fetch_one(&database.pool).await.unwrap()
    };
    assert_eq!(price().await, 1, "the price from before the holder before");

    // What is read by a statement after the advance is there to stay.
    assert_eq!(rows(&database.pool, &orders.advance(), 43, 3).await, 1);
    let update = orders.update("price = (SELECT price FROM price)");
    assert_eq!(rows(&database.pool, &update, 43, 3).await, 1);
    assert_eq!(price().await, 2);
}

#[tokio::test]
async fn rows_with_one_key_are_judged_one_by_one() {
    let (database, orders) = orders().await;
    run(&database.pool, "ALTER TABLE orders DROP CONSTRAINT orders_pkey").await;
    assert_eq!(rows(&database.pool, &orders.advance(), 42, 2).await, 1);
    run(&database.pool, "INSERT INTO orders (id) VALUES (7)").await;
    assert_eq!(rows(&database.pool, &orders.advance(), 41, 1).await, 1, "a late write of one row");
}

#[tokio::test]
async fn an_advance_beside_ones_own_transaction_waits_for_oneself() {
    let (database, gate) = Database::with_gate().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let options = options.options([("lock_timeout", "50ms")]);
    let pool = PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
    let beside = PostgresGate::new(pool);
    let mut tx = database.pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut tx, KEY, stamp(41, 1)).await, Ok(Admitted::First));
    assert_eq!(store_kind(beside.advance(KEY, stamp(41, 1)).await), Definite);
    tx.commit().await.unwrap();
    assert_eq!(beside.advance(KEY, stamp(41, 1)).await, Ok(Admitted::Again));
}

#[tokio::test]
async fn a_late_write_of_a_lease_lands_after_a_later_one_of_it_unless_it_is_numbered() {
    let (database, orders) = orders().await;
    run(&database.pool, "ALTER TABLE orders ADD COLUMN step INT NOT NULL DEFAULT 0").await;
    let step = async || -> i32 {
        let step = sqlx::query_scalar("SELECT step FROM orders WHERE id = 7");
        step.fetch_one(&database.pool).await.unwrap()
    };
    let update = |step| orders.update(&format!("step = {step}"));
    assert_eq!(rows(&database.pool, &update(2), 41, 1).await, 1);
    assert_eq!(rows(&database.pool, &update(1), 41, 1).await, 1);
    assert_eq!(step().await, 1);

    let numbered = |step| format!("{} AND step < {step}", update(step));
    assert_eq!(rows(&database.pool, &numbered(3), 41, 1).await, 1);
    assert_eq!(rows(&database.pool, &numbered(2), 41, 1).await, 0);
    assert_eq!(step().await, 3);
}
