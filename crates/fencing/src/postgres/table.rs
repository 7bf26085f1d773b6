use super::identifier::{Identifier, IdentifierError};

/// A table with the watermark of each resource, as statements for any driver.
///
/// A gate needs `SELECT`, `INSERT` and `UPDATE` on it. The name is checked once, when the value is
/// made.
///
/// ```
/// use leasehold_fencing::postgres::FenceTable;
///
/// let table = FenceTable::new("locks.fences")?;
/// assert!(table.admit().contains(r#"INSERT INTO "locks"."fences""#));
/// # Ok::<(), leasehold_fencing::postgres::IdentifierError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceTable {
    create: Box<str>,
    admit: Box<str>,
    highest: Box<str>,
}

impl FenceTable {
    /// The name of the table unless another is chosen.
    pub const DEFAULT_NAME: &str = "leasehold_fences";

    /// The migration that creates the table of the default name, if it is not there.
    ///
    /// The package has it as a file, `migrations/leasehold_fences.sql`.
    pub const CREATE: &str = include_str!("../../migrations/leasehold_fences.sql");

    /// The statement that admits a stamp, on the table of the default name.
    ///
    /// `$1` is the resource, `$2` the fence as `BIGINT`, `$3` the lease as text. It returns one row
    /// if the stamp was admitted, with the fence that was admitted before (`NULL` for the first),
    /// and none if the stamp is stale: roll the transaction back then.
    pub const ADMIT: &str = include_str!("sql/admit.sql");

    /// The statement that reads the watermark of `$1`, on the table of the default name.
    ///
    /// It returns the fence and the lease. Send it after a refusal, to say what stood in the way.
    pub const HIGHEST: &str = include_str!("sql/highest.sql");

    /// A table by its name, `table` or `schema.table`, which is taken as written: case matters.
    ///
    /// # Errors
    ///
    /// [`IdentifierError`] when it cannot be the name of a table.
    pub fn new(name: &str) -> Result<Self, IdentifierError> {
        let name = Identifier::table(name)?.to_string();
        let for_this = |text: &str| text.replace(Self::DEFAULT_NAME, &name).into();
        Ok(Self {
            create: for_this(Self::CREATE),
            admit: for_this(Self::ADMIT),
            highest: for_this(Self::HIGHEST),
        })
    }

    /// [`CREATE`](Self::CREATE) for this table. Its schema must exist.
    pub fn create(&self) -> &str {
        &self.create
    }

    /// [`ADMIT`](Self::ADMIT) for this table.
    pub fn admit(&self) -> &str {
        &self.admit
    }

    /// [`HIGHEST`](Self::HIGHEST) for this table.
    pub fn highest(&self) -> &str {
        &self.highest
    }
}

impl Default for FenceTable {
    fn default() -> Self {
        let [create, admit, highest] =
            [Self::CREATE, Self::ADMIT, Self::HIGHEST].map(Box::<str>::from);
        Self { create, admit, highest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_names_the_table() {
        let table = FenceTable::new("locks.fences").unwrap();
        for text in [table.create(), table.admit(), table.highest()] {
            assert!(text.contains(r#" "locks"."fences" "#), "{text}");
            assert!(!text.contains(FenceTable::DEFAULT_NAME), "{text}");
        }
        assert_eq!(FenceTable::default().admit(), FenceTable::ADMIT);
    }

    #[test]
    fn the_limit_of_the_table_is_that_of_fences() {
        let greatest = leasehold_core::FenceToken::MAX;
        assert!(FenceTable::CREATE.contains(&format!("BETWEEN 1 AND {greatest})")));
    }
}
