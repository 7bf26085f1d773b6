use crate::Failure;

/// What went wrong in a benchmark, which goes on all the same.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// Adds something that went wrong, and tells it at once.
    pub(crate) fn add(&mut self, text: String) {
        eprintln!("{text}");
        self.0.push(text);
    }

    /// Tells all of it again, below the tables.
    pub(crate) fn print(&self) {
        for failure in &self.0 {
            println!("FAILED: {failure}");
        }
        println!();
    }

    /// An error if anything went wrong.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.join("; ").into()) }
    }
}
