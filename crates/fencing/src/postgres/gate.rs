use std::sync::Arc;

use leasehold_core::{Stamp, StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Row};

use super::{
    failure::{Scope, failed, stamp_of},
    table::FenceTable,
};
use crate::{
    error::{GateError, ResourceError},
    gate::{Admitted, FenceGate, GateFuture, Refusals},
};

/// Watermarks in a table of PostgreSQL, compared and written in the caller's own transaction.
///
/// [`admit_in`](Self::admit_in) is the gate of a write. As a [`FenceGate`] it uses a connection of
/// its pool and commits at once. Both wait as long as the server and the pool let them: set
/// `lock_timeout`, `statement_timeout` and the pool's `acquire_timeout`. Cloning is cheap.
///
/// ```no_run
/// # use leasehold_fencing::{FenceGate, GateError, Stamp, postgres::PostgresGate};
/// # use leasehold_fencing::sqlx;
/// # async fn example(pool: sqlx::PgPool, stamp: Stamp) -> Result<(), Box<dyn std::error::Error>> {
/// let gate = PostgresGate::new(pool.clone());
/// gate.advance("orders/42", stamp).await?; // from here on, the holder before is shut out
///
/// let mut tx = pool.begin().await?;
/// gate.admit_in(&mut tx, "orders/42", stamp).await?;
/// sqlx::query("UPDATE orders SET state = 'paid' WHERE id = 42").execute(&mut *tx).await?;
/// tx.commit().await?; // the admission and the write, or neither
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a gate does nothing itself, admit writes through it"]
pub struct PostgresGate {
    pool: PgPool,
    table: Arc<FenceTable>,
    refusals: Arc<Refusals>,
}

impl PostgresGate {
    /// The longest resource, in bytes.
    pub const MAX_RESOURCE_BYTES: usize = 1024;

    /// How often a statement of the gate's own is tried when it conflicts with others.
    const ATTEMPTS: u32 = 8;

    /// Makes a gate whose watermarks are in the table of the default name.
    pub fn new(pool: PgPool) -> Self {
        let refusals = Arc::new(Refusals::new("postgres"));
        Self { pool, table: Arc::default(), refusals }
    }

    /// Keeps the watermarks in another table. Default: [`FenceTable::DEFAULT_NAME`].
    pub fn table(self, table: FenceTable) -> Self {
        Self { table: Arc::new(table), ..self }
    }

    /// Creates the table, if it is not there: for tests, and services without migrations.
    ///
    /// # Errors
    ///
    /// [`GateError::Store`] when the server refused or failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the table was created. It may be repeated.
    pub async fn create_table(&self) -> Result<(), GateError> {
        let create = || sqlx::query(safe(&self.table.create)).execute(&self.pool);
        let created = match create().await {
            // Two at once can conflict in the catalog; the other one is committed by then.
            Err(error) if is_any(&error, &["42P07", "42710", "23505"]) => create().await,
            created => created,
        };
        created.map(drop).map_err(|error| failed(&error, "the table of fences", Scope::Alone))
    }

    /// Admits a newer fence, or an equal one of the same lease, within the caller's transaction.
    ///
    /// The admission is committed with whatever the transaction writes, or not at all. Until it
    /// ends, others that present a stamp for this resource wait. Admit before reading what the
    /// write depends on. A repeat with the same stamp is admitted [`Again`](Admitted::Again).
    ///
    /// The transaction has to be one of sqlx: `begin()` or `begin_with()`. After an error it can
    /// only be rolled back, as a whole or to a savepoint from before the call. So a refusal that is
    /// overlooked writes nothing: later statements fail with SQLSTATE 25P02, and a commit keeps
    /// nothing, though `commit()` itself reports no error.
    ///
    /// What the admission does not see stands among the [traps](crate::postgres#traps).
    ///
    /// # Errors
    ///
    /// - [`GateError::Stale`] when another holder has been admitted.
    /// - [`GateError::Conflict`] when the server gave the transaction up for another one: repeat
    ///   it. [`TransactionConflict::of`](crate::TransactionConflict::of) reads the same of your own
    ///   statements, and of the commit.
    /// - [`GateError::Store`] when the server failed; of kind `Config` when the connection is in no
    ///   transaction or the table is not there, of kind `Corrupt` when the watermark is not one.
    /// - [`GateError::Resource`] when the resource is empty, too long or contains NUL.
    ///
    /// # Cancel safety
    ///
    /// After a drop it is open whether the transaction has admitted the stamp: roll it back.
    pub async fn admit_in(
        &self,
        conn: &mut PgConnection,
        resource: &str,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        if !conn.is_in_transaction() {
            check(resource)?;
            return Err(in_no_transaction(resource).into());
        }
        let admitted = self.attempt(conn, resource, presented, Scope::Within).await;
        let admitted = admitted.and_then(|one| one.ok_or_else(|| unseen(resource).into()));
        if admitted.is_err() {
            // This statement fails, and so the transaction; if it cannot be sent, nothing can
            // commit.
            let _ = sqlx::query(SPOIL).persistent(false).execute(conn).await;
        }
        admitted
    }

    /// Admits in a transaction of its own, which commits at once.
    async fn admit_alone(&self, resource: &str, presented: Stamp) -> Result<Admitted, GateError> {
        check(resource)?;
        let mut met = unseen(resource).into();
        for _ in 0..Self::ATTEMPTS {
            // Before anything was sent.
            let failed = |error| failed(&error, resource, Scope::Within);
            let mut conn = self.pool.acquire().await.map_err(failed)?;
            match self.attempt(&mut conn, resource, presented, Scope::Alone).await {
                // The watermark was deleted between the two statements.
                Ok(None) => met = unseen(resource).into(),
                // A repeat reads everything again.
                Err(GateError::Conflict(conflict)) => met = conflict.into(),
                Ok(Some(admitted)) => return Ok(admitted),
                Err(error) => return Err(error),
            }
        }
        Err(met)
    }

    /// `None` when the stamp was not admitted, and the watermark cannot be seen. In a transaction
    /// it can: the refusal has locked its row.
    async fn attempt(
        &self,
        conn: &mut PgConnection,
        resource: &str,
        presented: Stamp,
        scope: Scope,
    ) -> Result<Option<Admitted>, GateError> {
        check(resource)?;
        let failed = |error| failed(&error, resource, scope);
        let (fence, lease) = (i64::from(presented.fence), presented.lease.to_string());
        let admit = sqlx::query(safe(&self.table.admit)).bind(resource).bind(fence).bind(lease);
        if let Some(row) = admit.fetch_optional(&mut *conn).await.map_err(failed)? {
            self.refusals.admitted();
            return Ok(Some(match row.try_get::<Option<i64>, _>(0).map_err(failed)? {
                None => Admitted::First,
                Some(previous) if previous == fence => Admitted::Again,
                Some(_) => Admitted::Newer,
            }));
        }
        let highest =
            sqlx::query(safe(&self.table.highest)).bind(resource).fetch_optional(conn).await;
        let Some(row) = highest.map_err(failed)? else { return Ok(None) };
        let Some(highest) = stamp_of(&row, resource, scope)? else { return Ok(None) };
        Err(self.refusals.refuse(resource, presented, highest).into())
    }
}

impl FenceGate for PostgresGate {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(self.admit_alone(resource, presented))
    }
}

/// Fails, so that the transaction can no longer be committed; the server logs the text.
// ADR 0043
const SPOIL: &str =
    "SELECT CAST('Leasehold refused this transaction, which cannot be committed' AS INT)";

/// A statement on a table whose name was checked; nothing else in it varies.
fn safe(statement: &Arc<str>) -> AssertSqlSafe<Arc<str>> {
    AssertSqlSafe(Arc::clone(statement))
}

fn check(resource: &str) -> Result<(), ResourceError> {
    if resource.contains('\0') {
        return Err(ResourceError::ContainsNul(resource.into()));
    }
    ResourceError::check_length(resource, PostgresGate::MAX_RESOURCE_BYTES)
}

fn is_any(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.contains(&code.as_ref()))
}

fn in_no_transaction(resource: &str) -> StoreError {
    let what = "the connection is in no transaction, so the admission would not guard the write";
    let remedy = "begin one with sqlx's begin() or begin_with(), and admit and write in it";
    StoreError::new(StoreErrorKind::Config, what, remedy).for_resource(resource)
}

fn unseen(resource: &str) -> StoreError {
    let what = "the watermark that refused the stamp cannot be seen";
    let remedy = "let nobody delete watermarks, and no row level security hide them";
    StoreError::new(StoreErrorKind::Config, what, remedy).for_resource(resource)
}
