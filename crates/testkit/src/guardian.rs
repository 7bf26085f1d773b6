use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::RedisServer;

/// A process that outlives this one by a moment and then kills the servers in its care, so that
/// those of a static value, which nobody drops, do not stay behind.
///
/// It waits for the end of its standard input, which comes however this process ends.
#[derive(Debug)]
pub(crate) struct Guardian {
    _process: Child,
}

/// A process in the care of a guardian, and the folder that it lives in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ward<'a> {
    pub(crate) pid: u32,
    pub(crate) folder: &'a Path,
}

impl Guardian {
    /// Guards processes that are not restarted.
    ///
    /// # Panics
    ///
    /// Panics if there is no shell.
    pub(crate) fn of<'a>(wards: impl IntoIterator<Item = Ward<'a>>) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", r#"read -r _; for pid in $0; do kill -9 "$pid"; done; rm -rf "$@""#]);
        let ward = |ward: Ward<'a>| (ward.pid.to_string(), ward.folder);
        let (pids, folders): (Vec<_>, Vec<_>) = wards.into_iter().map(ward).unzip();
        command.arg(pids.join(" "));
        command.args(folders);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { _process: command.spawn().expect("there is a shell") }
    }
}

impl<'a> From<&'a RedisServer> for Ward<'a> {
    fn from(server: &'a RedisServer) -> Self {
        let folder = server.socket().parent().expect("a socket lives in a folder");
        Self { pid: server.pid(), folder }
    }
}
