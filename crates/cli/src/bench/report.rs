use serde_json::{Value, json};

use super::measure::{BenchPart, Measured};
use crate::table::table;

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn per_second(measured: Measured) -> f64 {
    measured.count as f64 / measured.time.as_secs_f64()
}

/// How often a second, and how many bare round trips one of them takes as long as.
fn figures(found: &[(BenchPart, Measured)]) -> impl Iterator<Item = (BenchPart, f64, f64)> {
    let bare = found
        .iter()
        .find(|(part, _)| *part == BenchPart::RoundTrip)
        .map(|(_, measured)| per_second(*measured));
    found.iter().map(move |(part, measured)| {
        let rate = per_second(*measured);
        (*part, rate, bare.unwrap_or(0.0) / rate)
    })
}

pub(super) fn text(found: &[(BenchPart, Measured)]) -> String {
    let rows = figures(found).map(|(part, rate, trips)| {
        let each = 1_000_000.0 / rate;
        vec![
            part.title().to_owned(),
            format!("{rate:>10.0}"),
            format!("{each:>9.1} us"),
            format!("{trips:>6.2}"),
        ]
    });
    table(&["WHAT", "PER SECOND", "EACH", "IN BARE ROUND TRIPS"], &rows.collect::<Vec<_>>())
}

pub(super) fn document(found: &[(BenchPart, Measured)]) -> Value {
    figures(found)
        .map(|(part, rate, trips)| {
            (part.key().to_owned(), json!({ "per_second": rate, "round_trips": trips }))
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}
