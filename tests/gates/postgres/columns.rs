use leasehold_core::{AcquisitionId, Fence};
use leasehold_fencing::sqlx;

use super::support::{Database, run, stamp};

#[tokio::test]
async fn fences_and_ids_of_leases_are_written_and_read_as_they_are() {
    let database = Database::new().await;
    run(&database.pool, "CREATE TABLE kept (fence BIGINT, lease TEXT)").await;
    let greatest = stamp(Fence::MAX, 7);
    sqlx::query("INSERT INTO kept VALUES ($1, $2)")
        .bind(greatest.fence)
        .bind(greatest.lease)
        .execute(&database.pool)
        .await
        .unwrap();
    let kept = "SELECT fence, lease FROM kept WHERE fence = $1 AND lease = $2";
    let kept: (Fence, Option<AcquisitionId>) = sqlx::query_as(kept)
        .bind(greatest.fence)
        .bind(Some(greatest.lease))
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(kept, (greatest.fence, Some(greatest.lease)));

    for wrong in ["0", "-1", "9007199254740992"] {
        let read =
            sqlx::query_scalar::<_, Fence>(sqlx::AssertSqlSafe(format!("SELECT {wrong}::BIGINT")));
        let error = read.fetch_one(&database.pool).await.unwrap_err().to_string();
        assert!(error.contains("is not a fence token"), "{error}");
    }
    let read = sqlx::query_scalar::<_, AcquisitionId>("SELECT 'x:1'");
    let error = read.fetch_one(&database.pool).await.unwrap_err().to_string();
    assert!(error.contains("is not an acquisition id"), "{error}");
}
