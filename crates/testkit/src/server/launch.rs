use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{address::Address, admin, version::ServerVersion};
use crate::{patience::Patience, process::Process};

/// Everything that is needed to start one server, once or again.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) address: Address,
    pub(super) args: Vec<(String, Vec<String>)>,
    pub(super) variables: Vec<(String, String)>,
    /// Lines of configuration for the starts from now on.
    pub(super) later: Mutex<Vec<(String, String)>>,
}

/// Why a server did not start.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// The program is not there.
    Missing,
    /// Somebody else took the port.
    PortTaken,
    /// Anything else, with the log.
    Failed(String),
}

impl Launch {
    /// How long a server has for its start.
    const LIMIT: Duration = Duration::from_secs(10);

    /// The unix socket that every server has, if only for its test.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// What the server has written so far.
    pub(super) fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// Begins an empty log.
    pub(super) fn forget_log(&self) {
        // One that is not there is empty.
        let _ = fs::remove_file(self.log_path());
    }

    /// Starts the program and waits until it answers.
    pub(super) fn run(&self) -> Result<Process, LaunchError> {
        let failed = |what: String| LaunchError::Failed(format!("{what}\n{}", self.log()));
        let mut command = self.command().map_err(|error| failed(error.to_string()))?;
        let process = match command.spawn() {
            Ok(child) => Process::new(child),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(LaunchError::Missing);
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let ended = Patience::of(Self::LIMIT).until(|| match process.exit_status() {
            Some(status) => Some(Some(status)),
            None if admin::answers(&self.socket()) => Some(None),
            None => None,
        });
        match ended {
            Some(None) => Ok(process),
            Some(Some(_)) if self.address.port().is_some() && self.port_was_taken() => {
                Err(LaunchError::PortTaken)
            }
            Some(Some(status)) => Err(failed(format!("redis-server ended at once, {status}"))),
            None => Err(failed(format!("redis-server did not answer in {:?}", Self::LIMIT))),
        }
    }

    fn command(&self) -> io::Result<Command> {
        let log = File::options().create(true).append(true).open(self.log_path())?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .envs(self.variables.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .args(["--save", "", "--appendonly", "no"])
            .args(["--bind", "127.0.0.1", "--dir"])
            .arg(&self.folder)
            .arg("--unixsocket")
            .arg(self.socket())
            // As since 7.0: a new user has no channels. Redis 6.2 gave it all of them.
            .args(["--acl-pubsub-default", "resetchannels"])
            .args(["--user", admin::USER])
            .args("on nopass ~* &* +@all".split(' '))
            .args(self.address_args());
        if self.version().is_some_and(ServerVersion::has_debug_switch) {
            command.args(["--enable-debug-command", "local"]);
        }
        for (key, values) in &self.args {
            command.arg(format!("--{key}")).args(values);
        }
        for (key, value) in self.later.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            command.arg(format!("--{key}")).arg(value);
        }
        Ok(command)
    }

    fn address_args(&self) -> Vec<String> {
        let port = self.address.port().unwrap_or(0).to_string();
        let file = |name| self.folder.join(name).display().to_string();
        let mut args: Vec<(&str, String)> = if self.address.is_tls() {
            vec![
                ("--port", "0".into()),
                ("--tls-port", port),
                ("--tls-cert-file", file("server.pem")),
                ("--tls-key-file", file("server.key")),
                ("--tls-ca-cert-file", file("ca.pem")),
                ("--tls-auth-clients", "no".into()),
                ("--tls-replication", "yes".into()),
                ("--tls-cluster", "yes".into()),
            ]
        } else {
            vec![("--port", port)]
        };
        if self.address.is_node() {
            args.push(("--cluster-enabled", "yes".into()));
        }
        args.iter().flat_map(|(key, value)| [(*key).to_owned(), value.clone()]).collect()
    }

    /// The version of the program.
    pub(super) fn version(&self) -> Option<ServerVersion> {
        ServerVersion::of(&self.program)
    }

    fn port_was_taken(&self) -> bool {
        self.log().contains("Address already in use")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("redis.log")
    }
}
