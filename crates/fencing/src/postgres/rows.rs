use super::table::{Identifier, IdentifierError};

/// A table of yours that keeps a fence and a lease in each row, as statements for any driver.
///
/// The write and the comparison are one statement, and no other table is needed. It guards the row
/// it writes, and nothing else: a transaction that writes more belongs behind a `PostgresGate`.
///
/// A row that is deleted forgets its fence. Where an old holder could insert it again, keep the row
/// and mark it deleted.
///
/// ```
/// use leasehold_fencing::postgres::FencedRows;
///
/// let orders = FencedRows::new("orders", "id")?;
/// assert_eq!(
///     orders.update("state = $4"),
///     concat!(
///         r#"UPDATE "orders" SET state = $4"#,
///         "\n",
///         r#", "fence" = $2, "lease" = $3 WHERE "id" = $1 AND ("fence" < $2 OR ("fence" = $2 AND "lease" = $3))"#,
///     ),
/// );
/// # Ok::<(), leasehold_fencing::postgres::IdentifierError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FencedRows {
    table: Identifier,
    key: Identifier,
    fence: Identifier,
    lease: Identifier,
    /// The table as the caller named it, for errors.
    #[cfg(feature = "postgres")]
    pub(super) name: Box<str>,
    #[cfg(feature = "postgres")]
    pub(super) refusals: std::sync::Arc<crate::gate::Refusals>,
}

impl FencedRows {
    /// Names the rows of a table, `table` or `schema.table`, by a column that names one of them. The
    /// columns `fence` and `lease` keep the stamp. Names are taken as written: case matters.
    ///
    /// The key column has to be unique: a `PRIMARY KEY` or a `UNIQUE` index of this one column.
    /// Otherwise each row of a key is judged by its own fence, and a late write would change some
    /// of them.
    ///
    /// # Errors
    ///
    /// [`IdentifierError`] when one cannot be the name of a table or column.
    pub fn new(table: &str, key: &str) -> Result<Self, IdentifierError> {
        Ok(Self {
            table: Identifier::table(table)?,
            key: Identifier::column(key)?,
            fence: Identifier::column("fence")?,
            lease: Identifier::column("lease")?,
            #[cfg(feature = "postgres")]
            name: table.into(),
            #[cfg(feature = "postgres")]
            refusals: std::sync::Arc::new(crate::gate::Refusals::new("postgres")),
        })
    }

    /// Gives other names to the columns that keep the stamp, both `NOT NULL`. Default: `fence` and
    /// `lease`.
    ///
    /// # Errors
    ///
    /// [`IdentifierError`] when one cannot be the name of a column.
    pub fn columns(mut self, fence: &str, lease: &str) -> Result<Self, IdentifierError> {
        (self.fence, self.lease) = (Identifier::column(fence)?, Identifier::column(lease)?);
        Ok(self)
    }

    /// Returns the migration that adds the two columns, if they are not there. It rewrites no row.
    #[must_use]
    pub fn add_columns(&self) -> String {
        let Self { table, fence, lease, .. } = self;
        format!(
            "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {fence} BIGINT NOT NULL DEFAULT 0, \
             ADD COLUMN IF NOT EXISTS {lease} TEXT COLLATE \"C\" NOT NULL DEFAULT ''"
        )
    }

    /// Returns the statement that writes a row if it admits the stamp.
    ///
    /// `$1` is the key, `$2` the fence as `BIGINT`, `$3` the lease as text; the assignments are
    /// yours and use `$4` and on. They are taken as they are, so nothing that a user typed belongs
    /// into them; a comment may stand at their end. When no row was written, the fence is stale or
    /// the row is missing: `why_unwritten` tells, or [`highest`](Self::highest).
    ///
    /// See also the [traps](crate::postgres#traps). When no row was written, roll back the rest
    /// of the transaction.
    #[must_use]
    pub fn update(&self, assignments: &str) -> String {
        // The line ends where the caller's text does: a comment there ends with it.
        self.write(&format!("{assignments}\n, "))
    }

    fn write(&self, assignments: &str) -> String {
        let (Self { table, key, fence, lease, .. }, condition) = (self, self.condition());
        format!(
            "UPDATE {table} SET {assignments}{fence} = $2, {lease} = $3 \
             WHERE {key} = $1 AND {condition}"
        )
    }

    /// Returns the statement that shuts the holder before out of a row, before the first read or write.
    ///
    /// Its parameters are those of [`update`](Self::update), which it is without assignments.
    /// Within a transaction it counts from the commit on, and a rollback undoes it.
    #[must_use]
    pub fn advance(&self) -> String {
        self.write("")
    }

    /// Returns what a statement of your own has to ask for: `$2` is the fence, `$3` the lease.
    ///
    /// The statement also has to set both columns.
    #[must_use]
    pub fn condition(&self) -> String {
        let Self { fence, lease, .. } = self;
        format!("({fence} < $2 OR ({fence} = $2 AND {lease} = $3))")
    }

    /// Returns the statement that reads the fence and the lease of the row `$1`.
    ///
    /// Send it after a write of no row, as a statement of its own. No row: it is missing. A fence
    /// above yours, or an equal one of another lease: yours is stale. Otherwise another condition
    /// of your statement did not hold.
    #[must_use]
    pub fn highest(&self) -> String {
        let Self { table, key, fence, lease, .. } = self;
        format!("SELECT {fence}, {lease} FROM {table} WHERE {key} = $1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_uses_the_names_that_were_chosen() {
        let rows = FencedRows::new("shop.orders", "number").unwrap();
        let rows = rows.columns("seen", "holder").unwrap();
        let texts = [rows.add_columns(), rows.update("a = $4"), rows.advance(), rows.highest()];
        for text in &texts {
            for name in [r#""shop"."orders""#, r#""seen""#, r#""holder""#] {
                assert!(text.contains(name), "{name}: {text}");
            }
            assert!(!text.contains(r#""fence""#) && !text.contains(r#""lease""#), "{text}");
        }
        assert!(texts[1..].iter().all(|text| text.contains(r#""number" = $1"#)), "{texts:?}");
    }

    #[test]
    fn names_are_checked() {
        assert!(FencedRows::new("orders; DROP TABLE orders", "id").is_err());
        assert!(FencedRows::new("orders", "id = id OR id").is_err());
        let rows = || FencedRows::new("orders", "id").unwrap();
        assert!(rows().columns("fence\"", "lease").is_err());
        assert!(rows().columns("fence", "").is_err());
    }
}
