use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::{
    authority::{Authority, ClientPems},
    builder::RedisServerBuilder,
    launch::Launch,
    version::ServerVersion,
};
use crate::{
    folder,
    launched::{self, LaunchError},
    patience::Patience,
    process::Process,
};

/// A `redis-server` process of one test: nobody else's data, killed when dropped.
///
/// It lives in a temporary folder with a short name. Its log is printed when a start fails and when
/// the test that owns it panics.
pub struct RedisServer {
    // Before the folder: the process ends first.
    process: Mutex<Process>,
    launch: Launch,
    authority: Option<Authority>,
    socket: PathBuf,
    _folder: TempDir,
}

impl RedisServer {
    /// The most bytes that the path of a unix socket can have everywhere.
    const MAX_SOCKET_PATH: usize = 100;

    /// What is told not to start.
    const NAME: &str = "Redis";

    /// How long a restart waits for its port to be free again.
    const PORT_LIMIT: Duration = Duration::from_secs(5);

    /// Describes a server: on a unix socket, without persistence, with `DEBUG` allowed.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::new()
    }

    /// Starts a server on a unix socket.
    ///
    /// # Panics
    ///
    /// Panics as [`RedisServerBuilder::start`] does.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Starts what a builder describes.
    pub(super) fn start_as(builder: RedisServerBuilder) -> Self {
        let RedisServerBuilder { program, address, args, variables, authority, is_its_authority } =
            builder;
        let votes = address.is_node();
        let folder = if votes { folder::in_memory() } else { folder::on_disk() };
        let mut launch = Launch {
            program,
            folder: folder.path().into(),
            address,
            args,
            variables,
            later: Mutex::default(),
        };
        let socket = launch.socket();
        assert!(
            socket.as_os_str().len() < Self::MAX_SOCKET_PATH,
            "{} is too long",
            socket.display()
        );
        let found = || match &authority {
            Some(other) => Authority::copied(other, folder.path()),
            None if is_its_authority => Authority::alone_in(folder.path()),
            None => Authority::found_in(folder.path()),
        };
        let authority = address.is_tls().then(|| found().expect("a private authority is made"));
        let process = launched::on_free_port(Self::NAME, &launch.log_path(), || {
            launch.address = launch.address.on_free_port();
            launch.run()
        });
        Self { process: Mutex::new(process), launch, authority, socket, _folder: folder }
    }

    /// The address of the server, as Leasehold takes it.
    pub fn url(&self) -> String {
        self.url_with("", "", 0)
    }

    /// The address with a login and a database; an empty user or password is left out.
    pub fn url_with(&self, user: &str, password: &str, db: u32) -> String {
        self.launch.address.url(&self.socket, user, password, db)
    }

    /// The unix socket, which every server has.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The port of 127.0.0.1, if the server has one.
    pub fn port(&self) -> Option<u16> {
        self.launch.address.port()
    }

    /// The certificate that clients of a server with TLS have to trust, as PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.authority.as_ref().map(Authority::ca_pem)
    }

    /// The certificate and the key of a server with TLS, as PEM, which a client may show, too.
    ///
    /// # Panics
    ///
    /// Panics if the server has none.
    pub fn certificate(&self) -> (String, String) {
        let read = |name| fs::read_to_string(self.folder().join(name)).expect("a server with TLS");
        (read("server.pem"), read("server.key"))
    }

    /// Gives a server with TLS a new certificate of a new authority, which is the only one that it trusts then.
    /// Open connections stay. Returns what a client needs from now on.
    ///
    /// # Panics
    ///
    /// Panics if the server has no TLS, or does not load it.
    pub fn renew_certificates(&self) -> ClientPems {
        let count = fs::read_dir(self.folder()).expect("the folder of the server").count();
        let folder = self.folder().join(format!("renewed-{count}"));
        let renewed = Authority::renewed_in(&folder, &self.certificate().1);
        for (setting, name) in [("tls-ca-cert-file", "ca.pem"), ("tls-cert-file", "server.pem")] {
            let file = folder.join(name).display().to_string();
            self.command(&["CONFIG", "SET", setting, &file]);
        }
        renewed.expect("a private authority is made")
    }

    /// Where the server keeps its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.launch.folder
    }

    /// The version of the server's program.
    ///
    /// # Panics
    ///
    /// Panics if the program does not tell its version.
    pub fn version(&self) -> ServerVersion {
        self.launch.version().expect("the program tells its version")
    }

    /// The program that the server was started from, for what else it can be, such as a Sentinel.
    pub fn program(&self) -> &Path {
        &self.launch.program
    }

    /// The id of the server's process.
    pub fn pid(&self) -> u32 {
        self.lock().id()
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        launched::text_of(&self.launch.log_path())
    }

    /// Stops the server with `SIGSTOP` and returns when it stands still: connections stay open and
    /// nothing is answered.
    ///
    /// # Panics
    ///
    /// Panics if the server was killed.
    pub fn stop_signal(&self) {
        self.lock().stop();
    }

    /// Lets a stopped server go on with `SIGCONT`.
    pub fn cont_signal(&self) {
        self.lock().cont();
    }

    /// Kills the server with `SIGKILL`; [`restart`](Self::restart) starts it again.
    pub fn kill(&self) {
        self.lock().kill();
    }

    /// Adds a line of configuration for the starts from now on, as
    /// [`RedisServerBuilder::arg`] does for all of them.
    pub fn set_for_restart(&self, key: &str, value: &str) {
        let mut later = self.launch.later.lock().unwrap_or_else(PoisonError::into_inner);
        later.push((key.into(), value.into()));
    }

    /// Kills the server and starts it again at the same address; unless persistence was asked for,
    /// without its data.
    ///
    /// # Panics
    ///
    /// Panics as [`RedisServerBuilder::start`] does, and if somebody took the port meanwhile.
    pub fn restart(&self) {
        let mut process = self.lock();
        process.kill();
        let started = Patience::of(Self::PORT_LIMIT).until(|| match self.launch.run() {
            Err(LaunchError::PortTaken) => {
                launched::forget(&self.launch.log_path());
                None
            }
            started => Some(started),
        });
        let started = started.unwrap_or(Err(LaunchError::PortTaken));
        *process = started.unwrap_or_else(|error| error.fail(Self::NAME));
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- log of the server at {} ---\n{}---", self.url(), self.log());
        }
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("url", &self.url()).finish_non_exhaustive()
    }
}
