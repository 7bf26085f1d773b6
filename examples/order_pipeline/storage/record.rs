use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};

use super::StorageError;
use crate::shelf::{Record, Shelf};

/// Reads a shelf's hash.
pub(super) fn record(row: &BTreeMap<String, String>) -> Result<Record, StorageError> {
    let shelf = Shelf { next: number(row, "next")?, stock: number(row, "stock")? };
    let count = row.keys().filter(|field| field.starts_with("order:")).count();
    let bookings = (0..count).map(|at| match row.get(&format!("order:{at}")) {
        Some(text) => parse(text),
        None => Err(StorageError::Answer(format!("no order:{at} of {count}"))),
    });
    Ok(Record {
        shelf,
        bookings: bookings.collect::<Result<_, _>>()?,
        twice: number(row, "twice")?,
    })
}

fn number<T: DeserializeOwned + Default>(
    row: &BTreeMap<String, String>,
    field: &str,
) -> Result<T, StorageError> {
    row.get(field).map_or_else(|| Ok(T::default()), |text| parse(text))
}

pub(super) fn json(value: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Answer(error.to_string()))
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StorageError> {
    serde_json::from_str(text).map_err(|_| StorageError::Answer(format!("{text:.100}")))
}
