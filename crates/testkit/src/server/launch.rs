use std::{
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{address::Address, admin, version::ServerVersion};
use crate::{
    launched::{self, LaunchError},
    process::Process,
};

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

impl Launch {
    /// How long a server has for its start.
    const LIMIT: Duration = Duration::from_secs(10);

    /// The unix socket that every server has, if only for its test.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// Starts the program and waits until it answers.
    pub(super) fn run(&self) -> Result<Process, LaunchError> {
        launched::run(self.command(), &self.log_path(), Self::LIMIT, || {
            admin::answers(&self.socket())
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .envs(self.variables.iter().map(|(key, value)| (key, value)))
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
        command
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

    /// What the server writes to.
    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join("redis.log")
    }
}
