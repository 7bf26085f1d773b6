use leasehold_core::StoreErrorKind::{Config, Corrupt, Definite};
use leasehold_fencing::{
    Admitted, FenceGate, GateError, ResourceError,
    postgres::PostgresGate,
    sqlx::{
        self, PgPool,
        postgres::{PgConnectOptions, PgPoolOptions},
    },
};

use super::support::{Database, KEY, WRITE, run, stale, stamp, store_kind, write};

async fn one_connection(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap()
}

#[tokio::test]
async fn a_connection_in_no_transaction_is_refused_before_anything_is_written() {
    let (database, gate) = Database::with_gate().await;
    let mut conn = database.pool.acquire().await.unwrap();
    let error = gate.admit_in(&mut conn, KEY, stamp(41, 1)).await;
    assert!(error.as_ref().unwrap_err().to_string().contains("begin()"), "{error:?}");
    assert_eq!(store_kind(error), Config);
    assert_eq!(database.watermark().await, None);
}

#[tokio::test]
async fn a_paused_holder_within_its_transaction_is_ended_by_the_servers_timeout() {
    let (database, gate) = Database::with_gate().await;
    let (paused, successor) = (stamp(41, 1), stamp(42, 2));
    let options: PgConnectOptions = database.url.parse().unwrap();
    let timeout = [("idle_in_transaction_session_timeout", "200ms")];
    let pool = one_connection(options.options(timeout)).await;

    let mut tx = pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut tx, KEY, paused).await, Ok(Admitted::First));
    sqlx::query(WRITE).bind("stale").execute(&mut *tx).await.unwrap();
    // Waits for the row that the paused one keeps, and gets it only because the server ends that.
    assert_eq!(write(&gate, &database.pool, "successor", successor).await, Ok(()));
    assert_eq!(store_kind(gate.admit_in(&mut tx, KEY, paused).await), Definite);
    assert!(tx.commit().await.is_err());
    assert_eq!(database.value().await, "successor");
    assert_eq!(write(&gate, &database.pool, "x", paused).await, Err(stale(paused, successor)));
}

#[tokio::test]
async fn a_locked_resource_and_a_failed_transaction_are_not_stale_fences() {
    let (database, gate) = Database::with_gate().await;
    let mut holder = database.pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut holder, KEY, stamp(41, 1)).await, Ok(Admitted::First));
    let mut tx = database.pool.begin().await.unwrap();
    sqlx::raw_sql("SET LOCAL lock_timeout = '10ms'").execute(&mut *tx).await.unwrap();
    for _ in ["locked", "failed before"] {
        assert_eq!(store_kind(gate.admit_in(&mut tx, KEY, stamp(42, 2)).await), Definite);
    }
}

#[tokio::test]
async fn a_missing_table_or_right_says_what_to_do() {
    let database = Database::new().await;
    let gate = PostgresGate::new(database.pool.clone());
    let missing = gate.advance(KEY, stamp(41, 1)).await;
    assert!(missing.as_ref().unwrap_err().to_string().contains("run the migration"), "{missing:?}");
    assert_eq!(store_kind(missing), Config);
    gate.create_table().await.unwrap();

    // Roles belong to the server, not to the database.
    let role = database.url.rsplit('/').next().unwrap().to_owned();
    run(&database.pool, &format!("CREATE ROLE {role} LOGIN")).await;
    let options = database.url.parse::<PgConnectOptions>().unwrap().username(&role);
    let limited = PostgresGate::new(one_connection(options).await);
    let denied = limited.advance(KEY, stamp(41, 1)).await;
    let words = "grant SELECT, INSERT and UPDATE";
    assert!(denied.as_ref().unwrap_err().to_string().contains(words), "{denied:?}");
    assert_eq!(store_kind(denied), Config);
    let grant = format!("GRANT SELECT, INSERT, UPDATE ON leasehold_fences TO {role}");
    run(&database.pool, &grant).await;
    assert_eq!(limited.advance(KEY, stamp(41, 1)).await, Ok(Admitted::First));
    assert!(limited.advance(KEY, stamp(40, 2)).await.is_err());

    let options: PgConnectOptions = database.url.parse().unwrap();
    let read_only = [("default_transaction_read_only", "on")];
    let replica = PostgresGate::new(one_connection(options.options(read_only)).await);
    assert_eq!(store_kind(replica.advance(KEY, stamp(42, 2)).await), Config);
}

#[tokio::test]
async fn a_corrupt_watermark_stops_everybody_and_is_not_taken_for_a_stale_fence() {
    let (database, gate) = Database::with_gate().await;
    let lease = stamp(1, 1).lease;
    run(
        &database.pool,
        "ALTER TABLE leasehold_fences DROP CONSTRAINT leasehold_fences_fence_check",
    )
    .await;
    for (fence, lease) in [
        ("50", "somebody".to_owned()),
        ("9007199254740992", lease.to_string()),
        ("9223372036854775807", lease.to_string()),
    ] {
        let set = format!(
            "TRUNCATE leasehold_fences; \
             INSERT INTO leasehold_fences VALUES ('{KEY}', {fence}, '{lease}')"
        );
        run(&database.pool, &set).await;
        assert_eq!(store_kind(gate.advance(KEY, stamp(41, 1)).await), Corrupt, "{fence} {lease}");
        let written = write(&gate, &database.pool, "damage", stamp(41, 1)).await;
        assert_eq!(store_kind(written), Corrupt, "{fence} {lease}");
    }
    assert_eq!(database.value().await, "untouched");
}

#[tokio::test]
async fn resources_that_cannot_be_indexed_are_refused_before_anything_is_sent() {
    let (database, gate) = Database::with_gate().await;
    let limit = PostgresGate::MAX_RESOURCE_BYTES;
    let bytes = limit + 1;
    for (resource, error) in [
        (String::new(), ResourceError::Empty),
        ("a\0".into(), ResourceError::ContainsNul("a\0".into())),
        ("a".repeat(bytes), ResourceError::TooLong { bytes, limit }),
    ] {
        let refused = Err(GateError::Resource(error));
        assert_eq!(gate.advance(&resource, stamp(41, 1)).await, refused);
        let mut tx = database.pool.begin().await.unwrap();
        assert_eq!(gate.admit_in(&mut tx, &resource, stamp(41, 1)).await, refused);
    }
    // The longest is as long as it may be after any encoding, and the same twice.
    let random = stamp(1, 1).to_string().repeat(limit);
    let longest = &random[..limit];
    assert_eq!(gate.advance(longest, stamp(41, 1)).await, Ok(Admitted::First));
    assert_eq!(gate.advance(longest, stamp(41, 1)).await, Ok(Admitted::Again));
}

#[tokio::test]
async fn a_closed_pool_is_no_loss() {
    let (database, gate) = Database::with_gate().await;
    database.pool.close().await;
    assert_eq!(store_kind(gate.advance(KEY, stamp(41, 1)).await), Config);
}

#[tokio::test]
async fn a_dropped_admission_is_undone_by_a_rollback_or_may_be_repeated() {
    let (database, gate) = Database::with_gate().await;
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let mut holder = database.pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut holder, KEY, older).await, Ok(Admitted::First));
    let mut tx = database.pool.begin().await.unwrap();
    tokio::select! {
        biased;
        early = gate.admit_in(&mut tx, KEY, newer) => panic!("{early:?}"),
        () = database.until_somebody_waits() => {}
    }
    holder.commit().await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(database.watermark().await, Some(older.to_string()));

    let mut holder = database.pool.begin().await.unwrap();
    assert_eq!(gate.admit_in(&mut holder, KEY, older).await, Ok(Admitted::Again));
    tokio::select! {
        biased;
        early = gate.advance(KEY, newer) => panic!("{early:?}"),
        () = database.until_somebody_waits() => {}
    }
    holder.commit().await.unwrap();
    assert!(gate.advance(KEY, newer).await.is_ok());
    assert_eq!(gate.advance(KEY, newer).await, Ok(Admitted::Again));
}
