use std::fmt;

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
