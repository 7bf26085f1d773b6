use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::{account::Account, binaries::Binaries, builder::PostgresServerBuilder};
use crate::{
    launched::{self, LaunchError},
    process::Process,
};

/// Everything that is needed to start one server in a folder of its own.
#[derive(Debug)]
pub(super) struct Launch {
    binaries: Binaries,
    account: Option<Account>,
    folder: PathBuf,
    settings: Vec<(String, String)>,
    /// The port of 127.0.0.1, if there is one.
    pub(super) port: Option<u16>,
}

impl Launch {
    /// How long a server has for its start, on a machine that is busy with other tests.
    const LIMIT: Duration = Duration::from_secs(30);

    /// The number in the name of the unix socket, where there is no port.
    const SOCKET_NUMBER: u16 = 5432;

    /// What makes a server quick and small; nothing outlives the test.
    const SETTINGS: [(&str, &str); 9] = [
        ("fsync", "off"),
        ("synchronous_commit", "off"),
        ("full_page_writes", "off"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_connections", "100"),
        ("shared_buffers", "16MB"),
        ("jit", "off"),
        ("log_line_prefix", "%m [%p] "),
    ];

    pub(super) fn new(binaries: Binaries, folder: &Path, builder: &PostgresServerBuilder) -> Self {
        let account = Account::to_become();
        let settings = builder.settings.clone();
        Self { binaries, account, folder: folder.into(), settings, port: None }
    }

    /// Makes the folder of the data.
    pub(super) fn initialise(&self) -> Result<(), LaunchError> {
        if let Some(account) = self.account {
            account.own(&self.folder)?;
        }
        let mut command = self.command("initdb");
        command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        command.args(["--no-sync", "--pgdata"]).arg(self.data());
        let output = command.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(LaunchError::Failed(format!("initdb: {}", String::from_utf8_lossy(&said))))
    }

    /// Starts the program and waits until it takes connections.
    pub(super) fn run(&self) -> Result<Process, LaunchError> {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        let defaults = Self::SETTINGS.iter().map(|(name, value)| format!("{name}={value}"));
        let own = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        for setting in defaults.chain(self.address()).chain(own) {
            command.arg("-c").arg(setting);
        }
        launched::run(command, &self.log_path(), Self::LIMIT, || self.is_ready())
    }

    /// The folder of the unix socket, as clients want it.
    pub(super) fn socket_folder(&self) -> &Path {
        &self.folder
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.program(program));
        // Messages in English, whatever the language here.
        command.current_dir(&self.folder).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        command
    }

    fn address(&self) -> [String; 3] {
        let listen = if self.port.is_some() { "127.0.0.1" } else { "" };
        [
            format!("listen_addresses={listen}"),
            format!("port={}", self.port.unwrap_or(Self::SOCKET_NUMBER)),
            format!("unix_socket_directories={}", self.folder.display()),
        ]
    }

    /// The eighth line of this file is what the server's own tools wait for.
    fn is_ready(&self) -> bool {
        let status = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        status.lines().nth(7).is_some_and(|line| line.trim() == "ready")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// What the server writes to.
    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join("postgres.log")
    }
}
