use crate::error::{ConflictKind, TransactionConflict};

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
