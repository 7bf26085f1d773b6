use std::{fs, path::PathBuf, process::Command, time::Duration};

use super::sentinel_group::SentinelGroup;
use crate::{
    launched::{self, LaunchError},
    process::Process,
    server::{LIMIT, connect_to, query},
};

/// Everything that is needed to start one Sentinel.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    /// The port of the master that it watches first.
    pub(super) master: u16,
    /// Where the certificates are, if it speaks TLS, too.
    pub(super) certificates: Option<PathBuf>,
}

impl Launch {
    /// How long a Sentinel has for its start.
    const LIMIT: Duration = Duration::from_secs(10);

    /// How many Sentinels have to agree that the master is down.
    const QUORUM: u32 = 2;

    /// What a Sentinel is told about its master.
    const SETTINGS: [(&str, u32); 3] =
        [("down-after-milliseconds", 1000), ("failover-timeout", 3000), ("parallel-syncs", 2)];

    /// How far above its own port it listens for TLS.
    pub(super) const TLS: u16 = 10_000;

    /// The address of the Sentinel.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts the program and waits until it answers.
    pub(super) fn run(&self) -> Result<Process, LaunchError> {
        fs::write(self.config_path(), self.config())?;
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).arg(self.config_path()).arg("--sentinel");
        launched::run(command, &self.log_path(), Self::LIMIT, || self.answers())
    }

    /// The lines of the file that the Sentinel reads once, and then writes what it learns to.
    fn config(&self) -> String {
        let Self { folder, port, master, .. } = self;
        let (name, quorum) = (SentinelGroup::MASTER, Self::QUORUM);
        let mut lines = vec![
            format!("port {port}"),
            "bind 127.0.0.1".into(),
            format!("dir {}", folder.display()),
            format!("sentinel monitor {name} 127.0.0.1 {master} {quorum}"),
        ];
        if let Some(folder) = &self.certificates {
            let file = |name| folder.join(name).display().to_string();
            lines.extend([
                format!("tls-port {}", port + Self::TLS),
                format!("tls-cert-file {}", file("server.pem")),
                format!("tls-key-file {}", file("server.key")),
                format!("tls-ca-cert-file {}", file("ca.pem")),
                "tls-auth-clients no".into(),
                "tls-replication yes".into(),
            ]);
        }
        let settings = Self::SETTINGS.iter();
        lines.extend(settings.map(|(key, value)| format!("sentinel {key} {name} {value}")));
        lines.join("\n") + "\n"
    }

    /// Whether the process is the one that answers: another may have the port.
    fn answers(&self) -> bool {
        let info = connect_to(&self.url(), LIMIT)
            .and_then(|mut connection| query::<String>(&mut connection, &["INFO", "server"]));
        let own = self.config_path().display().to_string();
        info.is_ok_and(|info| info.contains(&own))
    }

    fn config_path(&self) -> PathBuf {
        self.folder.join("sentinel.conf")
    }

    /// What the Sentinel writes to.
    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join("sentinel.log")
    }
}
