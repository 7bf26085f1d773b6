use std::{env, os::unix::process::parent_id};

use tempfile::TempDir;

use super::library;
use crate::folder;

/// Lets other processes fork themselves, without unsafe code: it is a small C library, built with
/// `cc` when it is needed, that a process preloads.
///
/// Start the process with [`variables`](Self::variables) in its environment; it then calls
/// [`fork`](Self::fork).
#[derive(Debug)]
pub struct ForkShim {
    variables: [(&'static str, String); 2],
    _folder: TempDir,
}

impl ForkShim {
    const SOURCE: &str = include_str!("fork.c");
    /// Says that the library is there.
    const PRELOADED: &str = "LEASEHOLD_FORK_SHIM";

    /// Builds the library.
    ///
    /// # Panics
    ///
    /// Panics if there is no `cc`, or if it does not build the library.
    pub fn build() -> Self {
        let folder = folder::on_disk();
        let preload = library::build(folder.path(), "fork", Self::SOURCE).display().to_string();
        Self {
            variables: [("LD_PRELOAD", preload), (Self::PRELOADED, "1".into())],
            _folder: folder,
        }
    }

    /// What stands in the environment of a process that forks itself.
    pub fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }

    /// Forks this process, of whose threads the new one has only this; returns the id of the new
    /// process, and `None` in that one. It ends with the thread that made it.
    ///
    /// # Panics
    ///
    /// Panics in a process that was started without the library, and if the system refuses a
    /// process.
    pub fn fork() -> Option<u32> {
        assert!(env::var_os(Self::PRELOADED).is_some(), "the library was not preloaded");
        match parent_id() {
            0 => None,
            u32::MAX => panic!("the system refuses a process"),
            pid => Some(pid),
        }
    }
}
