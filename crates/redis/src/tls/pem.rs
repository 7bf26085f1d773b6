use std::{
    fmt, fs,
    io::{self, Read as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Certificates or a key, in PEM: a text, or where it is read for each new connection.
///
/// A text or bytes become one by `into()`, and stay as they are. [`file`](Self::file) and
/// [`read_by`](Self::read_by) are read again whenever a connection is made, so that what was renewed is used;
/// open connections stay as they are.
///
/// They are read and checked when the lock runtime is made, too: what cannot be used then is an error of
/// kind `Config`. If a file or a function gives nothing fit later, making the connection fails with an error of
/// kind `Definite`, and is tried again. A file that is replaced by renaming is never half written.
#[derive(Clone)]
pub struct Pem {
    read: Arc<ReadPem>,
    path: Option<PathBuf>,
}

type ReadPem = dyn Fn() -> io::Result<Vec<u8>> + Send + Sync;

/// The longest file, in bytes. That of all authorities of a system has a quarter.
const LONGEST: u64 = 1024 * 1024;

impl Pem {
    /// A regular file of at most 1 MiB.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let file = path.clone();
        Self { path: Some(path), ..Self::read_by(move || read_file(&file)) }
    }

    /// What a function returns, for what is kept elsewhere than in a file. It is called when the lock runtime is
    /// made, on that thread, and for each connection, on one of tokio's threads for blocking work: there it may
    /// block for as long as making a connection may take.
    ///
    /// ```
    /// # use leasehold_redis::Pem;
    /// # use std::sync::{Arc, Mutex};
    /// let newest = Arc::new(Mutex::new(String::from("-----BEGIN CERTIFICATE-----…")));
    /// let kept = Arc::clone(&newest);
    /// let pem = Pem::read_by(move || {
    ///     let newest = kept.lock().map_err(|_| std::io::Error::other("a task has panicked"))?;
    ///     Ok(newest.clone().into_bytes())
    /// });
    /// # drop(pem);
    /// ```
    pub fn read_by(read: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), path: None }
    }

    /// Reads it. A function of others may panic: that must not look like the end of the tokio runtime.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let read = catch_unwind(AssertUnwindSafe(|| (self.read)()));
        read.unwrap_or_else(|_panic| Err(io::Error::other("the function has panicked")))
    }

    /// The setting that it belongs to, and its file, for a text.
    pub(super) fn named(&self, setting: &str) -> String {
        match &self.path {
            Some(path) => format!("{setting}: {}", path.display()),
            None => format!("{setting}: what was given"),
        }
    }
}

/// A pipe gives its text once, and blocks until then; a device may have no end.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        let what =
            "it is a pipe, a folder or a device: name a file, it is read again for each connection";
        return Err(io::Error::other(what));
    }
    let mut text = Vec::new();
    let read = fs::File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if read as u64 > LONGEST {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

impl From<Vec<u8>> for Pem {
    fn from(pem: Vec<u8>) -> Self {
        Self::read_by(move || Ok(pem.clone()))
    }
}

impl From<&[u8]> for Pem {
    fn from(pem: &[u8]) -> Self {
        pem.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Pem {
    fn from(pem: &[u8; N]) -> Self {
        pem.to_vec().into()
    }
}

impl From<String> for Pem {
    fn from(pem: String) -> Self {
        pem.into_bytes().into()
    }
}

impl From<&str> for Pem {
    fn from(pem: &str) -> Self {
        pem.as_bytes().into()
    }
}

impl From<&String> for Pem {
    fn from(pem: &String) -> Self {
        pem.as_bytes().into()
    }
}

/// `Debug` shows the file alone: the text may be a key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").field("file", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str) -> String {
        Pem::file(path).read().map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_read_anew_each_time() {
        let file = std::env::temp_dir().join(format!("leasehold-pem-{}", std::process::id()));
        let pem = Pem::file(&file);
        for text in ["one", "two"] {
            fs::write(&file, text).unwrap();
            assert_eq!(pem.read().unwrap(), text.as_bytes());
        }
        let long = vec![b'x'; 1024 * 1024 + 1];
        fs::write(&file, &long[1..]).unwrap();
        assert_eq!(pem.read().unwrap().len(), 1024 * 1024);
        fs::write(&file, long).unwrap();
        let error = pem.read().map(drop).unwrap_err().to_string();
        assert!(error.contains("longer than 1 MiB"), "{error}");
        fs::remove_file(&file).unwrap();
        assert!(pem.read().is_err());
    }

    /// A pipe gives its text once, and blocks; a device may never end.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_read() {
        assert!(refused("/dev/zero").contains("a device: name a file"), "{}", refused("/dev/zero"));
        let (_reader, writer) = io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
        let pipe = refused(&format!("/dev/fd/{fd}"));
        assert!(pipe.contains("is a pipe") && pipe.contains("read again"), "{pipe}");
    }
}
