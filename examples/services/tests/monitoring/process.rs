use std::{
    env,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A process that is killed when the value is dropped.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Starts an example of this package, which the build of the tests has built.
    pub(crate) fn example(
        name: &str,
        arguments: &[&str],
        environment: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        let deps = env::current_exe().expect("a test knows its own program");
        let profile: PathBuf = deps.ancestors().nth(2).expect("a folder of the profile").into();
        let mut command = Command::new(profile.join("examples").join(name));
        Self::start(command.args(arguments).env_remove("REDIS_URL").envs(environment))
    }

    /// Starts a process whose output nobody reads.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let help = "; `scripts/test.sh --install` installs what is missing";
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}{help}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this machine on which nobody listens.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}
