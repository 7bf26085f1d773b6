use std::{env, fs, path::PathBuf};

/// The folder with the programs of one version of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries(PathBuf);

impl Binaries {
    /// Where distributions put them, with a folder for each version; most keep them out of `PATH`.
    const VERSIONS: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];

    /// The programs in `PATH`, or else the newest that are installed.
    pub(super) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
        folders.extend(Self::VERSIONS.iter().flat_map(|(parent, prefix)| newest(parent, prefix)));
        folders.into_iter().map(Self).find(Self::are_there)
    }

    /// One of the programs.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn are_there(&self) -> bool {
        ["initdb", "postgres"].iter().all(|name| self.program(name).is_file())
    }
}

/// The folders of versions, the newest first.
fn newest(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let major = name.strip_prefix(prefix)?.split('.').next()?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["9.6", "15", "common", "17"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let found = newest(parent.path().to_str().unwrap(), "");
        let expected = ["17", "15", "9.6"].map(|name| parent.path().join(name).join("bin"));
        assert_eq!(found, expected);
    }
}
