//! What failures of PostgreSQL mean, and why a statement has written nothing.

use std::fmt;

use leasehold_core::{
    Fence, Stamp, StoreError,
    StoreErrorKind::{self, Config, Corrupt, Definite, Indeterminate},
};
use sqlx::{AssertSqlSafe, Encode, PgConnection, Postgres, Row, Type, postgres::PgRow};

use super::rows::FencedRows;
use crate::{
    error::{ConflictKind, GateError, StaleFence, TransactionConflict, not_a_stamp},
    gate::judge,
};

/// What a broken connection means for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// It is part of a transaction that now cannot commit.
    Within,
    /// It is a transaction of its own, which may have committed.
    Alone,
}

impl TransactionConflict {
    /// Reads an error of a statement or a `COMMIT` of yours; `None` when it is something else.
    ///
    /// A serializable transaction may be given up at any of its statements, and at its end.
    pub fn of(error: &sqlx::Error) -> Option<Self> {
        Self::during("the transaction", error)
    }

    pub(super) fn during(what: &str, error: &sqlx::Error) -> Option<Self> {
        let database = error.as_database_error()?;
        let kind = match database.code()?.as_ref() {
            "40001" => ConflictKind::Serialization,
            "40P01" => ConflictKind::Deadlock,
            _ => return None,
        };
        Some(Self { kind, during: what.into(), message: database.message().into() })
    }
}

pub(super) fn failed(error: &sqlx::Error, resource: &str, scope: Scope) -> GateError {
    let during = format!("the gate of {resource:?}");
    if let Some(conflict) = TransactionConflict::during(&during, error) {
        return conflict.into();
    }
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    let (kind, remedy) = match (code.as_deref(), error) {
        (Some(code), _) => by_code(code),
        (None, sqlx::Error::PoolTimedOut) => (
            Definite,
            "see whether the server takes connections; if so, give the pool more, or find who \
                 keeps them",
        ),
        (None, sqlx::Error::PoolClosed) => (Config, "use a pool that is open"),
        (None, sqlx::Error::Configuration(_) | sqlx::Error::Tls(_)) => {
            (Config, "correct the address and the options of the connection")
        }
        (None, sqlx::Error::ColumnDecode { .. }) => (
            Corrupt,
            "make both columns NOT NULL, of the types and defaults that the migration gives them",
        ),
        (None, _) if scope == Scope::Alone => {
            (Indeterminate, "repeat it with the same stamp: twice is once")
        }
        (None, _) => {
            (Definite, "the transaction cannot commit; run all of it again on another connection")
        }
    };
    StoreError::new(kind, error.to_string(), remedy).for_resource(resource).into()
}

/// What an SQLSTATE means for a statement that has left nothing behind.
fn by_code(code: &str) -> (StoreErrorKind, &'static str) {
    match code {
        "42P01" | "3F000" => {
            (Config, "run the migration of the table, or name the table and schema that it made")
        }
        "28P01" | "28000" | "3D000" => {
            (Config, "correct the user, the password or the name of the database")
        }
        "42501" => (Config, "grant SELECT, INSERT and UPDATE on the table"),
        "25006" => (Config, "connect to the primary, in a transaction that may write"),
        "25P02" => (
            Definite,
            "an earlier statement of the transaction failed: roll back and run all of it again",
        ),
        "55P03" | "57014" => (
            Definite,
            "another transaction keeps the resource locked: roll back and run all of it again",
        ),
        // Connection lost, out of resources, ended by an operator or a timeout, a system error.
        _ if ["08", "25P03", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => {
            (Definite, "roll back and run the whole transaction again")
        }
        _ => (Config, "compare the table with the migration that makes it"),
    }
}

/// Reads a fence and a lease; `None` when there is no fence yet.
pub(super) fn stamp_of(
    row: &PgRow,
    resource: &str,
    scope: Scope,
) -> Result<Option<Stamp>, GateError> {
    let failed = |error| failed(&error, resource, scope);
    let fence: i64 = row.try_get(0).map_err(failed)?;
    let lease: String = row.try_get(1).map_err(failed)?;
    if (fence, lease.as_str()) == (0, "") {
        return Ok(None);
    }
    let (Ok(token), Ok(id)) = (Fence::try_from(fence), lease.parse()) else {
        return Err(not_a_stamp(&format!("fence {fence} and lease {lease:?}"), resource).into());
    };
    Ok(Some(Stamp::new(token, id)))
}

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
    /// let done = sqlx::query(sqlx::AssertSqlSafe(update)) // its names were checked
    ///     .bind(42_i64)
    ///     .bind(stamp.fence)
    ///     .bind(stamp.lease)
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
        let highest = AssertSqlSafe(format!("{} LIMIT 2", self.highest()));
        let rows = sqlx::query(highest).bind(key).fetch_all(conn).await;
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
    StoreError::new(Config, what, remedy).for_resource(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_leaves_only_a_statement_of_its_own_open() {
        let kind = |scope| {
            let error = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
            match failed(&error, "a", scope) {
                GateError::Store(error) => error.kind(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(kind(Scope::Alone), Indeterminate);
        assert_eq!(kind(Scope::Within), Definite);
    }

    #[test]
    fn every_refusal_of_the_server_has_its_kind() {
        for (code, kind) in [
            ("42P01", Config),
            ("42501", Config),
            ("22023", Config),
            ("25P02", Definite),
            ("25P03", Definite),
            ("55P03", Definite),
            ("57P01", Definite),
            ("53300", Definite),
        ] {
            assert_eq!(by_code(code).0, kind, "{code}");
        }
    }
}
