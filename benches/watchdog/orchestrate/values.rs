use super::plan::Run;
use crate::{output::Output, table::Column};

/// The columns of a run's values.
pub(crate) const COLUMNS: &[Column] = &[
    ("cmd/s", "commands_per_second", 1),
    ("per cmd", "per_cmd", 1),
    ("lost", "lost", 0),
    ("renewed/s", "renewed_per_second", 0),
    ("max/mean", "max_of_mean", 2),
    ("failed", "failed", 0),
    ("CPU ms/s", "cpu_ms_per_second", 2),
    ("lag p50 ms", "lag_p50_ms", 2),
    ("p99 ms", "lag_p99_ms", 2),
    ("max ms", "lag_max_ms", 2),
    ("bytes", "bytes", 0),
    ("acquired in s", "acquired_in_s", 2),
    ("CPU s", "acquired_cpu_s", 2),
];

/// A value for each column.
#[expect(clippy::cast_precision_loss, reason = "there are not that many")]
pub(super) fn of(run: &Run, output: &Output) -> Vec<f64> {
    let seconds = run.seconds as f64;
    let renewed = output.renewed.iter().sum::<u64>() as f64 / seconds;
    let fullest = output.renewed.iter().copied().max().unwrap_or_default() as f64;
    let commands = output.commands as f64 / seconds;
    vec![
        commands,
        renewed / commands,
        output.lost as f64,
        renewed,
        fullest / renewed,
        output.failed as f64,
        output.cpu_s * 1e3 / seconds,
        output.lag_p50_ms,
        output.lag_p99_ms,
        output.lag_max_ms,
        output.bytes_per_lease,
        output.acquired_in_s,
        output.acquired_cpu_s,
    ]
}
