use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::{binaries::Binaries, builder::PostgresServerBuilder, launch::Launch};
use crate::{folder, launched, patience::Patience, process::Process, server::free_port};

/// A PostgreSQL server of one test: nobody else's data, killed when dropped.
///
/// It is made from the programs of the system in a temporary folder with a short name, and keeps
/// its promises about crashes no better than that: nothing is synced to disk. Everybody who reaches
/// it is the superuser `postgres`. Where this process is root, which PostgreSQL refuses, the server
/// runs as `postgres` or `nobody`. Its log is printed when a start fails and when the test that
/// owns it panics.
pub struct PostgresServer {
    // Before the folder: the process ends first.
    process: Process,
    launch: Launch,
    _folder: TempDir,
}

impl PostgresServer {
    /// How long a server has to end with its processes before it is killed without them.
    const END_LIMIT: Duration = Duration::from_secs(5);

    /// Describes a server.
    pub fn builder() -> PostgresServerBuilder {
        PostgresServerBuilder::default()
    }

    /// Starts a server on a unix socket, which takes about a second.
    ///
    /// # Panics
    ///
    /// Panics as [`PostgresServerBuilder::start`] does.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// The server that other tests of this process use at the moment, or a new one; the last to
    /// drop it ends it. For tests that each use a database of their own.
    ///
    /// # Panics
    ///
    /// Panics as [`PostgresServerBuilder::start`] does.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Self::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    /// Starts what a builder describes.
    pub(super) fn start_as(builder: &PostgresServerBuilder) -> Self {
        let Some(binaries) = Binaries::find() else {
            panic!(
                "PostgreSQL is not installed (initdb and postgres, in PATH or \
                 /usr/lib/postgresql/*/bin); `scripts/test.sh --install` installs it and runs the \
                 tests, on Debian so does `apt-get install postgresql`"
            )
        };
        let folder = folder::on_disk();
        let mut launch = Launch::new(binaries, folder.path(), builder);
        launch.initialise().unwrap_or_else(|error| error.fail("PostgreSQL"));
        let process = launched::on_free_port("PostgreSQL", &launch.log_path(), || {
            launch.port = builder.tcp.then(free_port);
            launch.run()
        });
        Self { process, launch, _folder: folder }
    }

    /// The address of the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The address of a database, whose name must need no encoding.
    pub fn url_of(&self, database: &str) -> String {
        if let Some(port) = self.launch.port {
            return format!("postgres://postgres@127.0.0.1:{port}/{database}");
        }
        let folder = self.socket_folder().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{database}")
    }

    /// The folder of the unix socket, which every server has.
    pub fn socket_folder(&self) -> &Path {
        self.launch.socket_folder()
    }

    /// The port of 127.0.0.1, if the server has one.
    pub fn port(&self) -> Option<u16> {
        self.launch.port
    }

    /// The id of the server's first process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        launched::text_of(&self.launch.log_path())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- log of the server at {} ---\n{}---", self.url(), self.log());
        }
        // A killed server would leave its other processes and a segment of shared memory behind.
        self.process.quit();
        Patience::of(Self::END_LIMIT).until(|| self.process.exit_status());
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresServer").field("url", &self.url()).finish_non_exhaustive()
    }
}
