use std::{fmt, process::ExitCode};

/// The result of a run: facts to be read, and conditions that must hold.
#[derive(Debug, Default)]
#[must_use = "an outcome that nobody looks at proves nothing"]
pub struct Outcome {
    facts: Vec<(&'static str, String)>,
    broken: Vec<&'static str>,
}

impl Outcome {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fact.
    pub fn fact(mut self, what: &'static str, value: impl fmt::Display) -> Self {
        self.facts.push((what, value.to_string()));
        self
    }

    /// Adds a condition; one that does not hold makes the run a failure.
    pub fn holds(mut self, what: &'static str, condition: bool) -> Self {
        if !condition {
            self.broken.push(what);
        }
        self
    }

    /// Prints it, and returns the exit code.
    pub fn print(&self) -> ExitCode {
        print!("{self}");
        if self.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, value) in &self.facts {
            writeln!(f, "{what:<28} {value:>12}")?;
        }
        for what in &self.broken {
            writeln!(f, "BROKEN: {what}")?;
        }
        if self.broken.is_empty() { writeln!(f, "all conditions hold") } else { Ok(()) }
    }
}
