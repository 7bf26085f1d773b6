use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use leasehold_testkit::Patience;

/// How long a run may take, on a machine that is busy with other tests.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// An example that cargo built along with this test.
fn program(example: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    let profile =
        test.parent().and_then(Path::parent).expect("tests are built into <profile>/deps");
    let program = profile.join("examples").join(format!("{example}{}", env::consts::EXE_SUFFIX));
    assert!(
        program.is_file(),
        "{} is missing; `cargo test` builds it, `cargo test --test …` needs \
         `cargo build --examples` before",
        program.display()
    );
    program
}

pub(crate) fn start(example: &str, url: Option<&str>) -> Child {
    start_with(example, url, None)
}

/// The same, where some replicas have to have each write.
pub(crate) fn start_with(example: &str, url: Option<&str>, replicas: Option<&str>) -> Child {
    let variables = [("REDIS_URL", url), ("REPLICAS", replicas)];
    spawn(example, variables.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

/// The same, with its stock on another server than its locks.
pub(crate) fn start_with_stock(example: &str, url: &str, stock: &str) -> Child {
    spawn(example, [("REDIS_URL", url), ("STORE_URL", stock)])
}

fn spawn<'a>(example: &str, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Child {
    let mut command = Command::new(program(example));
    for key in ["REDIS_URL", "STORE_URL", "REPLICAS"] {
        command.env_remove(key);
    }
    command.envs(variables);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the example starts")
}

/// What the program wrote until it ended; its output is small enough to stay in the pipe.
pub(crate) fn finished(mut child: Child) -> Output {
    let ended = Patience::of(LIMIT).until(|| child.try_wait().expect("a child can be asked"));
    if ended.is_none() {
        child.kill().expect("a child can be killed");
    }
    let output = child.wait_with_output().expect("a child can be read");
    let (report, error) = (text(&output.stdout), text(&output.stderr));
    assert!(ended.is_some(), "not finished within {LIMIT:?}: {report}{error}");
    output
}

/// The example has ended well, and its report has these lines.
pub(crate) fn assert_reported(output: &Output, lines: &[&str]) {
    let (report, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{report}{error}");
    for line in lines {
        assert!(report.contains(line), "{line}: {report}{error}");
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
