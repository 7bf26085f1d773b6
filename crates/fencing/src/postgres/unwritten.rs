use std::fmt;

use leasehold_core::{Stamp, StoreError, StoreErrorKind};
use sqlx::{Encode, PgConnection, Postgres, Type};

use super::{
    failure::{Scope, failed, stamp_of},
    rows::FencedRows,
};
use crate::{
    error::{GateError, StaleFence},
    gate::judge,
};

/// Why a fenced statement wrote no row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a stale holder must stop"]
pub enum Unwritten {
    /// There is no such row.
    Missing,
    /// Another holder has written or advanced the row; stop, and acquire the lock again.
    Stale(StaleFence),
    /// The row takes this stamp: another condition of the statement did not hold, or the row has
    /// come or changed since. Look at the row, and decide anew.
    Admissible,
}

impl FencedRows {
    /// Tells why a statement that was to write the row of a key has written none.
    ///
    /// Ask on the same connection right after it, in the same transaction if it was in one. Each
    /// stale fence counts in `leasehold_fence_rejected_total`.
    ///
    /// ```no_run
    /// # use leasehold_fencing::{Stamp, postgres::{FencedRows, Unwritten}, sqlx::{self, PgConnection}};
    /// # async fn example(conn: &mut PgConnection, stamp: Stamp) -> Result<(), Box<dyn std::error::Error>> {
    /// let orders = FencedRows::new("orders", "id")?;
    /// let update = orders.update("state = $4");
    /// let done = sqlx::query(&update)
    ///     .bind(42_i64)
    ///     .bind(i64::from(stamp.fence))
    ///     .bind(stamp.lease.to_string())
    ///     .bind("paid")
    ///     .execute(&mut *conn)
    ///     .await?;
    /// if done.rows_affected() == 0 {
    ///     match orders.why_unwritten(conn, 42_i64, stamp).await? {
    ///         Unwritten::Missing => println!("there is no order 42"),
    ///         Unwritten::Stale(stale) => return Err(stale.into()),
    ///         Unwritten::Admissible => println!("it has come since: write again"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`GateError::Conflict`] when the server gave the transaction up for another one.
    /// - [`GateError::Store`] when the server failed; of kind `Corrupt` when the row's two columns
    ///   are not the stamp of a lease, of kind `Config` when several rows have the key.
    ///
    /// # Cancel safety
    ///
    /// It only reads: dropping the future changes nothing.
    pub async fn why_unwritten<K>(
        &self,
        conn: &mut PgConnection,
        key: K,
        presented: Stamp,
    ) -> Result<Unwritten, GateError>
    where
        K: fmt::Display + for<'q> Encode<'q, Postgres> + Type<Postgres> + Send,
    {
        let (resource, scope) = (format!("{}/{key}", self.name), Scope::Within);
        // A second row shows that the key is not unique.
        let highest = format!("{} LIMIT 2", self.highest());
        let rows = sqlx::query(&highest).bind(key).fetch_all(conn).await;
        let rows = rows.map_err(|error| failed(&error, &resource, scope))?;
        let row = match &rows[..] {
            [] => return Ok(Unwritten::Missing),
            [row] => row,
            _ => return Err(several(&resource).into()),
        };
        let verdict = judge(stamp_of(row, &resource, scope)?, presented);
        let judged = self.refusals.judged(verdict, &resource, presented);
        Ok(judged.map_or_else(Unwritten::Stale, |_| Unwritten::Admissible))
    }
}

fn several(resource: &str) -> StoreError {
    let what = "several rows have this key, and each is judged by its own fence";
    let remedy = "use a key that is unique: the column of a PRIMARY KEY or of a UNIQUE index";
    StoreError::new(StoreErrorKind::Config, what, remedy).for_resource(resource)
}
