use std::time::Duration;

use crate::Failure;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    /// How long a round lasts.
    pub(crate) round: Duration,
    /// How long a row is run before its first round.
    pub(crate) warm_up: Duration,
    /// How many rounds without the gate, and as many through it.
    pub(crate) rounds: usize,
    only: String,
}

impl Options {
    /// Reads `--seconds`, `--rounds` and `--only`; `--bench` and `--test` come from cargo.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let (mut seconds, mut rounds, mut only) = (1.0, 5, String::new());
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} has no value"));
            match argument.as_str() {
                "--seconds" => seconds = value()?.parse()?,
                "--rounds" => rounds = value()?.parse()?,
                "--only" => only = value()?,
                "--bench" => {}
                // `cargo test --benches` asks for one quick pass.
                "--test" => (seconds, rounds) = (0.02, 1),
                _ => return Err(format!("there is no {argument}").into()),
            }
        }
        let round = Duration::try_from_secs_f64(seconds)?;
        if round.is_zero() || rounds == 0 {
            return Err("--seconds and --rounds have to be above 0".into());
        }
        Ok(Self { round, warm_up: round / 4, rounds, only })
    }

    /// Whether a row is to be measured.
    pub(crate) fn wants(&self, row: &str) -> bool {
        row.contains(&self.only)
    }
}
