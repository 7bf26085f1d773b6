use leasehold_core::{FenceToken, Stamp, StoreError, StoreErrorKind};
use sqlx::{Row, postgres::PgRow};

use crate::error::{ConflictKind, GateError, TransactionConflict};

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
            StoreErrorKind::Definite,
            "see whether the server takes connections; if so, give the pool more, or find who \
                 keeps them",
        ),
        (None, sqlx::Error::PoolClosed) => (StoreErrorKind::Config, "use a pool that is open"),
        (None, sqlx::Error::Configuration(_) | sqlx::Error::Tls(_)) => {
            (StoreErrorKind::Config, "correct the address and the options of the connection")
        }
        (None, sqlx::Error::ColumnDecode { .. }) => (
            StoreErrorKind::Corrupt,
            "make both columns NOT NULL, of the types and defaults that the migration gives them",
        ),
        (None, _) if scope == Scope::Alone => {
            (StoreErrorKind::Indeterminate, "repeat it with the same stamp: twice is once")
        }
        (None, _) => (
            StoreErrorKind::Definite,
            "the transaction cannot commit; run all of it again on another connection",
        ),
    };
    StoreError::new(kind, error.to_string(), remedy).for_resource(resource).into()
}

/// What an SQLSTATE means for a statement that has left nothing behind.
fn by_code(code: &str) -> (StoreErrorKind, &'static str) {
    match code {
        "42P01" | "3F000" => (
            StoreErrorKind::Config,
            "run the migration of the table, or name the table and schema that it made",
        ),
        "28P01" | "28000" | "3D000" => {
            (StoreErrorKind::Config, "correct the user, the password or the name of the database")
        }
        "42501" => (StoreErrorKind::Config, "grant SELECT, INSERT and UPDATE on the table"),
        "25006" => {
            (StoreErrorKind::Config, "connect to the primary, in a transaction that may write")
        }
        "25P02" => (
            StoreErrorKind::Definite,
            "an earlier statement of the transaction failed: roll back and run all of it again",
        ),
        "55P03" | "57014" => (
            StoreErrorKind::Definite,
            "another transaction keeps the resource locked: roll back and run all of it again",
        ),
        // Connection lost, out of resources, ended by an operator or a timeout, a system error.
        _ if ["08", "25P03", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => {
            (StoreErrorKind::Definite, "roll back and run the whole transaction again")
        }
        _ => (StoreErrorKind::Config, "compare the table with the migration that makes it"),
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
    match (FenceToken::try_from(fence), lease.parse()) {
        (Ok(fence), Ok(lease)) => Ok(Some(Stamp::new(fence, lease))),
        _ => Err(corrupt(fence, &lease, resource)),
    }
}

fn corrupt(fence: i64, lease: &str, resource: &str) -> GateError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!("the watermark holds fence {fence} and lease {lease:?}, which is not the stamp of a lease"),
        "find out who wrote it, then set it to the stamp of the last holder, or delete it while nobody writes",
    )
    .for_resource(resource)
    .into()
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
        assert_eq!(kind(Scope::Alone), StoreErrorKind::Indeterminate);
        assert_eq!(kind(Scope::Within), StoreErrorKind::Definite);
    }

    #[test]
    fn every_refusal_of_the_server_has_its_kind() {
        for (code, kind) in [
            ("42P01", StoreErrorKind::Config),
            ("42501", StoreErrorKind::Config),
            ("22023", StoreErrorKind::Config),
            ("25P02", StoreErrorKind::Definite),
            ("25P03", StoreErrorKind::Definite),
            ("55P03", StoreErrorKind::Definite),
            ("57P01", StoreErrorKind::Definite),
            ("53300", StoreErrorKind::Definite),
        ] {
            assert_eq!(by_code(code).0, kind, "{code}");
        }
    }
}
