use leasehold_core::{
    Fence,
    StoreErrorKind::{Config, Corrupt},
};
use leasehold_fencing::{
    StaleFence, Stamp,
    postgres::{FencedRows, Unwritten},
    sqlx::{self, PgConnection},
};

use super::support::{Database, run, stamp, store_kind};

async fn orders() -> (Database, FencedRows) {
    let database = Database::new().await;
    run(&database.pool, "CREATE TABLE orders (id BIGINT PRIMARY KEY, state TEXT)").await;
    run(&database.pool, "INSERT INTO orders VALUES (7, 'new')").await;
    let orders = FencedRows::new("orders", "id").unwrap();
    for _ in ["first", "again"] {
        run(&database.pool, &orders.add_columns()).await;
    }
    (database, orders)
}

/// Writes a row as a service would.
async fn write(
    orders: &FencedRows,
    conn: &mut PgConnection,
    (id, state): (i64, &str),
    presented: Stamp,
) -> Result<(), Unwritten> {
    let update = orders.update("state = $4");
    let update =
        sqlx::query(sqlx::AssertSqlSafe(&*update)).bind(id).bind(i64::from(presented.fence));
    let update = update.bind(presented.lease.to_string()).bind(state);
    let done = update.execute(&mut *conn).await.unwrap();
    if done.rows_affected() > 0 {
        return Ok(());
    }
    Err(orders.why_unwritten(conn, id, presented).await.unwrap())
}

fn stale(presented: Stamp, highest: Stamp) -> Unwritten {
    Unwritten::Stale(StaleFence { presented, highest, resource: "orders/7".into() })
}

async fn state(database: &Database) -> String {
    let state = sqlx::query_scalar("SELECT state FROM orders WHERE id = 7");
    state.fetch_one(&database.pool).await.unwrap()
}

#[tokio::test]
async fn one_statement_takes_newer_fences_and_equal_ones_of_the_same_lease() {
    let (database, orders) = orders().await;
    let conn = &mut database.pool.acquire().await.unwrap();
    let (older, newer, same_fence) = (stamp(9, 1), stamp(10, 2), stamp(10, 3));
    assert_eq!(write(&orders, conn, (7, "a"), older).await, Ok(()));
    assert_eq!(write(&orders, conn, (7, "b"), older).await, Ok(()));
    assert_eq!(write(&orders, conn, (7, "c"), newer).await, Ok(()));
    assert_eq!(write(&orders, conn, (7, "stale"), older).await, Err(stale(older, newer)));
    assert_eq!(write(&orders, conn, (7, "stale"), same_fence).await, Err(stale(same_fence, newer)));
    assert_eq!(write(&orders, conn, (7, "d"), newer).await, Ok(()));
    let (last, greatest) = (stamp(Fence::MAX - 1, 4), stamp(Fence::MAX, 5));
    assert_eq!(write(&orders, conn, (7, "e"), greatest).await, Ok(()));
    assert_eq!(write(&orders, conn, (7, "stale"), last).await, Err(stale(last, greatest)));
    assert_eq!(state(&database).await, "e");
}

#[tokio::test]
async fn a_missing_row_is_not_a_stale_fence() {
    let (database, orders) = orders().await;
    let conn = &mut database.pool.acquire().await.unwrap();
    let presented = stamp(41, 1);
    assert_eq!(write(&orders, conn, (8, "x"), presented).await, Err(Unwritten::Missing));
    // Nor is a row that came since, or one that another condition left out.
    run(&database.pool, "INSERT INTO orders VALUES (8, 'new')").await;
    let admissible = orders.why_unwritten(conn, 8_i64, presented).await;
    assert_eq!(admissible, Ok(Unwritten::Admissible));
    assert_eq!(write(&orders, conn, (8, "x"), presented).await, Ok(()));
}

#[tokio::test]
async fn an_advance_shuts_the_holder_before_out_and_changes_nothing_else() {
    let (database, orders) = orders().await;
    let conn = &mut database.pool.acquire().await.unwrap();
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(write(&orders, conn, (7, "older"), older).await, Ok(()));
    let advance = orders.advance();
    let advance =
        sqlx::query(sqlx::AssertSqlSafe(&*advance)).bind(7_i64).bind(i64::from(newer.fence));
    let done = advance.bind(newer.lease.to_string()).execute(&mut **conn).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
    assert_eq!(write(&orders, conn, (7, "stale"), older).await, Err(stale(older, newer)));
    assert_eq!(state(&database).await, "older");
}

/// The refused statement waits for the newer holder's commit, and still tells why it was refused.
#[tokio::test]
async fn a_statement_that_waited_sees_what_it_waited_for() {
    let (database, orders) = orders().await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let mut tx = database.pool.begin().await.unwrap();
    assert_eq!(write(&orders, &mut tx, (7, "newer"), newer).await, Ok(()));
    let waiting = tokio::spawn({
        let (orders, pool) = (orders.clone(), database.pool.clone());
        async move {
            let mut conn = pool.acquire().await.unwrap();
            write(&orders, &mut conn, (7, "stale"), older).await
        }
    });
    database.until_somebody_waits().await;
    // What a reader of the same moment sees would admit the older one.
    let conn = &mut database.pool.acquire().await.unwrap();
    let admissible = orders.why_unwritten(conn, 7_i64, older).await;
    assert_eq!(admissible, Ok(Unwritten::Admissible));
    tx.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(stale(older, newer)));
    assert_eq!(state(&database).await, "newer");
}

#[tokio::test]
async fn columns_can_have_other_names_and_keys_be_texts() {
    let database = Database::new().await;
    run(&database.pool, "CREATE SCHEMA shop; CREATE TABLE shop.\"Order\" (name TEXT)").await;
    run(&database.pool, "INSERT INTO shop.\"Order\" VALUES ('n7')").await;
    let orders = FencedRows::new("shop.Order", "name").unwrap();
    let orders = orders.columns("seen", "holder").unwrap();
    run(&database.pool, &orders.add_columns()).await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let advance = orders.advance();
    for (presented, rows) in [(newer, 1), (older, 0)] {
        let advance =
            sqlx::query(sqlx::AssertSqlSafe(&*advance)).bind("n7").bind(i64::from(presented.fence));
        let done = advance.bind(presented.lease.to_string()).execute(&database.pool).await.unwrap();
        assert_eq!(done.rows_affected(), rows);
    }
    let conn = &mut database.pool.acquire().await.unwrap();
    let why = orders.why_unwritten(conn, "n7", older).await;
    assert!(matches!(&why, Ok(Unwritten::Stale(stale)) if &*stale.resource == "shop.Order/n7"));
    assert!(matches!(why, Ok(Unwritten::Stale(stale)) if stale.highest == newer));
}

#[tokio::test]
async fn a_row_whose_stamp_is_none_is_corrupt() {
    let (database, orders) = orders().await;
    run(&database.pool, "UPDATE orders SET fence = 50, lease = 'somebody'").await;
    let conn = &mut database.pool.acquire().await.unwrap();
    assert_eq!(store_kind(orders.why_unwritten(conn, 7_i64, stamp(41, 1)).await), Corrupt);
}

#[tokio::test]
async fn a_comment_behind_the_assignments_does_not_take_the_condition_with_it() {
    for assignments in
        ["state = $4 -- 'paid' or 'void'", "state = $4 --", "state = $4 /* paid */ -- $1 $2 $3"]
    {
        let (database, orders) = orders().await;
        run(&database.pool, "INSERT INTO orders VALUES (8, 'new'), (9, 'new')").await;
        let conn = &mut database.pool.acquire().await.unwrap();
        let update = orders.update(assignments);
        let mut written = Vec::new();
        for (fence, text) in [(42, "newer"), (41, "stale")] {
            let presented = stamp(fence, fence);
            let update = sqlx::query(sqlx::AssertSqlSafe(&*update))
                .bind(7_i64)
                .bind(i64::from(presented.fence));
            let update = update.bind(presented.lease.to_string()).bind(text);
            written.push(update.execute(&mut **conn).await.unwrap().rows_affected());
        }
        assert_eq!(written, [1, 0], "{assignments}");
        let states = sqlx::query_scalar("SELECT state FROM orders ORDER BY id");
        let states: Vec<String> = states.fetch_all(&database.pool).await.unwrap();
        assert_eq!(states, ["newer", "new", "new"], "{assignments}");
    }
}

#[tokio::test]
async fn a_key_of_several_rows_is_told() {
    let (database, orders) = orders().await;
    run(&database.pool, "ALTER TABLE orders DROP CONSTRAINT orders_pkey").await;
    run(&database.pool, "INSERT INTO orders VALUES (7, 'twin')").await;
    let conn = &mut database.pool.acquire().await.unwrap();
    let why = orders.why_unwritten(conn, 7_i64, stamp(41, 1)).await;
    assert!(why.as_ref().is_err_and(|error| error.to_string().contains("unique")), "{why:?}");
    assert_eq!(store_kind(why), Config);
}
