use std::path::Path;

use tempfile::TempDir;

/// A new folder with a short name, on the disk.
pub(crate) fn on_disk() -> TempDir {
    below("/tmp")
}

/// The same in memory, where the system has such a place: servers that vote wait until their vote is
/// on the disk. A busy disk takes seconds for that, and then Sentinels do nothing for half a minute.
pub(crate) fn in_memory() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    below(if Path::new(MEMORY).is_dir() { MEMORY } else { "/tmp" })
}

fn below(place: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix("lh-").tempdir_in(place);
    folder.unwrap_or_else(|error| panic!("{place} takes no temporary folder: {error}"))
}
