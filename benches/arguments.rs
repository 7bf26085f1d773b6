use std::{collections::HashMap, fmt::Display, str::FromStr};

use crate::Failure;

/// `--key value` pairs that are not yet read.
#[derive(Debug)]
pub(crate) struct Arguments<'a>(HashMap<&'a str, &'a str>);

impl<'a> Arguments<'a> {
    /// Reads the pairs.
    pub(crate) fn of(arguments: &'a [String]) -> Result<Self, Failure> {
        let (pairs, rest) = arguments.as_chunks::<2>();
        if let Some(odd) = rest.first() {
            return Err(format!("{odd} has no value").into());
        }
        let named = |[key, value]: &'a [String; 2]| {
            let key = key.strip_prefix("--").ok_or_else(|| format!("{key} is no option"))?;
            Ok::<_, Failure>((key, value.as_str()))
        };
        Ok(Self(pairs.iter().map(named).collect::<Result<_, _>>()?))
    }

    /// Takes a value, if it was given.
    pub(crate) fn take<T>(&mut self, key: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.0.remove(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|error| format!("--{key} {text}: {error}").into())
    }

    /// Takes a value.
    pub(crate) fn need<T>(&mut self, key: &str) -> Result<T, Failure>
    where
        T: FromStr<Err: Display>,
    {
        self.take(key)?.ok_or_else(|| format!("--{key} is missing").into())
    }

    /// Nothing is left.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.0.keys().next() {
            Some(key) => Err(format!("there is no --{key}").into()),
            None => Ok(()),
        }
    }
}
