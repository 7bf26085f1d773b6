use std::{
    env,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use leasehold_testkit::Patience;

use crate::servers::Servers;

/// What a run takes at most, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_secs(120);

/// An example that cargo built along with this test, to be started.
#[derive(Debug)]
pub(crate) struct Program(Command);

impl Program {
    /// On nothing but this machine.
    pub(crate) fn of(example: &str) -> Self {
        let mut command = Command::new(built(example));
        command.env_remove("REDIS_URL").env_remove("DATABASE_URL");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command)
    }

    /// On a server for its locks, and a database for its data.
    pub(crate) fn on(self, servers: &Servers, database: &str) -> Self {
        let url = servers.database(database);
        self.on_redis(servers).with("DATABASE_URL", &url)
    }

    /// On a server for its locks.
    pub(crate) fn on_redis(self, servers: &Servers) -> Self {
        self.with("REDIS_URL", &servers.redis())
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn start(mut self) -> Run {
        Run(self.0.spawn().expect("the example starts"))
    }
}

/// An example at work.
#[derive(Debug)]
#[must_use = "an example that nobody waits for shows nothing"]
pub(crate) struct Run(Child);

impl Run {
    /// Ends it as a crash does.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("a child can be killed");
        self.0.wait().expect("a killed child ends");
    }

    /// Asks it to stop, as a platform does.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// It ends with success, and its report contains some lines.
    pub(crate) fn ends_well(self, lines: &[&str]) {
        let output = self.output();
        let (report, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{report}{error}");
        for line in lines {
            assert!(report.contains(line), "{line}: {report}{error}");
        }
    }

    /// It ends, and says that some conditions do not hold.
    pub(crate) fn breaks(self, conditions: &[&str]) {
        let output = self.output();
        let (report, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{report}{error}");
        for condition in conditions {
            assert!(report.contains(&format!("BROKEN: {condition}")), "{report}{error}");
        }
    }

    /// It ends with one line that contains some words, and no secret.
    pub(crate) fn fails_with(self, words: &[&str]) {
        let output = self.output();
        let (report, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{report}{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
        for word in ["hush", "panicked", "Error {", "Inner"] {
            assert!(!error.contains(word), "{word}: {error}");
        }
    }

    /// What it wrote until it ended; that is small enough to stay in the pipe.
    fn output(mut self) -> Output {
        let ended = Patience::of(LIMIT).until(|| self.0.try_wait().expect("a child can be asked"));
        if ended.is_none() {
            self.0.kill().expect("a child can be killed");
        }
        let output = self.0.wait_with_output().expect("a child can be read");
        let (report, error) = (text(&output.stdout), text(&output.stderr));
        assert!(ended.is_some(), "not finished within {LIMIT:?}: {report}{error}");
        output
    }
}

fn built(example: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    let profile =
        test.parent().and_then(Path::parent).expect("tests are built into <profile>/deps");
    let program = profile.join("examples").join(format!("{example}{}", env::consts::EXE_SUFFIX));
    assert!(
        program.is_file(),
        "{} is missing; `cargo test` builds it, `cargo test --test …` needs \
         `cargo build -p leasehold-services --examples` before",
        program.display()
    );
    program
}

/// An address of this machine on which nobody listens.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
