use std::{fmt, sync::Arc};

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
    pub(super) create: Arc<str>,
    pub(super) admit: Arc<str>,
    pub(super) highest: Arc<str>,
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

    /// Names a table, `table` or `schema.table`, which is taken as written: case matters.
    ///
    /// # Errors
    ///
    /// [`IdentifierError`] when it cannot be the name of a table.
    pub fn new(name: &str) -> Result<Self, IdentifierError> {
        Ok(Self::named(&Identifier::table(name)?.to_string()))
    }

    /// The table with a name as it stands in statements.
    fn named(name: &str) -> Self {
        let [create, admit, highest] = [Self::CREATE, Self::ADMIT, Self::HIGHEST]
            .map(|text| text.replace(Self::DEFAULT_NAME, name).into());
        Self { create, admit, highest }
    }

    /// Returns [`CREATE`](Self::CREATE) for this table. Its schema must exist.
    pub fn create(&self) -> &str {
        &self.create
    }

    /// Returns [`ADMIT`](Self::ADMIT) for this table.
    pub fn admit(&self) -> &str {
        &self.admit
    }

    /// Returns [`HIGHEST`](Self::HIGHEST) for this table.
    pub fn highest(&self) -> &str {
        &self.highest
    }
}

impl Default for FenceTable {
    fn default() -> Self {
        Self::named(Self::DEFAULT_NAME)
    }
}

/// The longest name that PostgreSQL does not cut off.
const MAX_BYTES: usize = 63;

/// A name of a table or column as it stands in a statement: checked, and in double quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identifier(Box<str>);

impl Identifier {
    pub(super) fn column(name: &str) -> Result<Self, IdentifierError> {
        check(name, name)?;
        Ok(Self(format!("\"{name}\"").into()))
    }

    /// The name of a table, `table` or `schema.table`.
    pub(super) fn table(name: &str) -> Result<Self, IdentifierError> {
        match name.split_once('.') {
            None => Self::column(name),
            Some((schema, table)) => {
                check(schema, name)?;
                check(table, name)?;
                Ok(Self(format!("\"{schema}\".\"{table}\"").into()))
            }
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(part: &str, name: &str) -> Result<(), IdentifierError> {
    let starts = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts && goes_on && part.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(IdentifierError { name: name.into() })
}

/// A name that cannot be that of a table or column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} cannot be the name of a table or column; use up to {MAX_BYTES} ASCII letters, digits \
     and underscores, not a digit first, and for a table at most one schema before a dot"
)]
pub struct IdentifierError {
    /// The name that was refused.
    pub name: Box<str>,
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
        let greatest = leasehold_core::Fence::MAX;
        assert!(FenceTable::CREATE.contains(&format!("BETWEEN 1 AND {greatest})")));
    }

    #[test]
    fn names_are_quoted_as_written() {
        assert_eq!(Identifier::table("fences").unwrap().to_string(), r#""fences""#);
        assert_eq!(Identifier::table("Locks.f_2").unwrap().to_string(), r#""Locks"."f_2""#);
        assert_eq!(Identifier::column("order").unwrap().to_string(), r#""order""#);
        assert!(Identifier::table(&"a".repeat(MAX_BYTES)).is_ok());
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        let long = "a".repeat(MAX_BYTES + 1);
        for name in
            ["", ".", "a.", ".a", "a.b.c", "1a", "a b", "a\"b", "a;--", "ä", "a\0", "a-b", &long]
        {
            let refused = IdentifierError { name: name.into() };
            assert_eq!(Identifier::table(name), Err(refused), "{name:?}");
        }
        assert!(Identifier::column("a.b").is_err());
    }
}
