use std::{
    fs::File,
    os::unix::fs::FileExt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;

use super::library;
use crate::folder;

/// The time of day of other processes, which a test moves while they run; other clocks stay.
///
/// It is a small C library, built with `cc` when it is needed, that a process preloads: start the
/// process with [`variables`](Self::variables) in its environment. All that do share the time.
#[derive(Debug)]
pub struct ClockShim {
    offset: Mutex<i64>,
    file: File,
    variables: [(&'static str, String); 2],
    _folder: TempDir,
}

impl ClockShim {
    const SOURCE: &str = include_str!("clock.c");

    /// Builds the library; the time is right as yet.
    ///
    /// # Panics
    ///
    /// Panics if there is no `cc`, or if it does not build the library.
    pub fn build() -> Self {
        let folder = folder::on_disk();
        let library = library::build(folder.path(), "clock", Self::SOURCE);
        let offset = folder.path().join("offset");
        let file = File::create_new(&offset).expect("a new folder takes a file");
        let variables = [
            ("LD_PRELOAD", library.display().to_string()),
            ("LEASEHOLD_CLOCK_OFFSET", offset.display().to_string()),
        ];
        let shim = Self { offset: Mutex::new(0), file, variables, _folder: folder };
        shim.forward(Duration::ZERO);
        shim
    }

    /// What stands in the environment of a process with this time.
    pub fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }

    /// Steps the time forward.
    ///
    /// # Panics
    ///
    /// Panics if the offset cannot be written, or is more than 292 years.
    pub fn forward(&self, step: Duration) {
        self.step(nanos(step));
    }

    /// Steps the time back.
    ///
    /// # Panics
    ///
    /// Panics as [`forward`](Self::forward) does.
    pub fn back(&self, step: Duration) {
        self.step(-nanos(step));
    }

    fn step(&self, nanos: i64) {
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        *offset = offset.checked_add(nanos).expect("an offset of less than 292 years");
        // One aligned word: nobody reads one half of it.
        self.file.write_all_at(&offset.to_ne_bytes(), 0).expect("the offset is written");
    }
}

fn nanos(step: Duration) -> i64 {
    i64::try_from(step.as_nanos()).expect("a step of less than 292 years")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisServer;

    #[test]
    fn a_server_has_the_time_of_its_shim() {
        let shim = ClockShim::build();
        let (server, other) = (RedisServer::builder().clock(&shim).start(), RedisServer::start());
        let time = |server: &RedisServer| server.query::<[u64; 2]>(&["TIME"])[0];
        let begun_at = time(&other);
        assert!(time(&server) >= begun_at);
        shim.forward(Duration::from_secs(7_200));
        assert!(time(&server) >= begun_at + 7_200);
        shim.back(Duration::from_secs(3 * 7_200));
        assert!(time(&server) < begun_at);
        assert!(time(&other) < begun_at + 7_200);
    }
}
