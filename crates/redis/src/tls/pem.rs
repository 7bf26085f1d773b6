use std::{
    fmt, fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
};

/// Certificates or a key, in PEM: a text, or where it is read for each new connection.
///
/// A text or bytes become one by `into()`, and stay as they are. [`file`](Self::file) and
/// [`read_by`](Self::read_by) are read again whenever a connection is made, so that what was renewed is used;
/// open connections stay as they are.
///
/// They are read and checked when the lock runtime is made, too: what cannot be used then is an error of
/// kind `Config`. If it cannot be used later, making the connection fails with an error of kind `Definite`,
/// and is tried again. A file that is replaced by renaming is never half written.
#[derive(Clone)]
pub struct Pem {
    read: Arc<Read>,
    path: Option<PathBuf>,
}

type Read = dyn Fn() -> io::Result<Vec<u8>> + Send + Sync;

impl Pem {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let file = path.clone();
        Self { path: Some(path), ..Self::read_by(move || fs::read(&file)) }
    }

    /// What a function returns, for what is kept elsewhere than in a file. It is called for each connection,
    /// on the thread that makes it, and must not block for long.
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
