use std::process::{Child, Command, Stdio};

use crate::RedisServer;

/// A process that outlives this one by a moment and then kills the servers in its care, so that
/// those of a static value, which nobody drops, do not stay behind.
///
/// It waits for the end of its standard input, which comes however this process ends.
#[derive(Debug)]
pub(super) struct Guardian {
    _process: Child,
}

impl Guardian {
    /// Guards servers that are not restarted.
    ///
    /// # Panics
    ///
    /// Panics if there is no shell.
    pub(super) fn of(servers: &[RedisServer]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", r#"read -r _; for pid in $0; do kill -9 "$pid"; done; rm -rf "$@""#]);
        let pids: Vec<_> = servers.iter().map(|server| server.pid().to_string()).collect();
        command.arg(pids.join(" "));
        command.args(servers.iter().filter_map(|server| server.socket().parent()));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { _process: command.spawn().expect("there is a shell") }
    }
}
