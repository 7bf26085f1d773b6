//! The guide of the command line does what it says: its blocks are one script, and what each of them
//! writes has the lines that the page shows.

use std::{env, fs, path::Path, process::Command};

use leasehold_testkit::{PostgresServer, RedisServer};

use crate::support::finished;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/command-line.md");

/// A block of the page that is run, and the lines that it has to write.
#[derive(Debug, Default)]
struct Step {
    script: String,
    lines: Vec<String>,
}

/// The steps of a page: a block of `sh`, and the block of `text` behind it, if there is one.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, body) = block.split_once('\n').unwrap_or((block, ""));
        match (language, steps.last_mut()) {
            ("sh", _) => steps.push(Step { script: body.into(), lines: Vec::new() }),
            ("text", Some(step)) if step.lines.is_empty() => {
                step.lines = body.lines().map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    steps
}

/// Whether a line has the parts between the dots of an expected one, in order.
fn fits(line: &str, expected: &str) -> bool {
    let mut rest = line;
    for part in expected.split('…').map(str::trim).filter(|part| !part.is_empty()) {
        // Columns are as wide as what stands in them.
        for word in part.split_whitespace() {
            let Some(at) = rest.find(word) else { return false };
            rest = &rest[at + word.len()..];
        }
    }
    true
}

const MARK: &str = "@@ step ";

#[test]
fn every_step_writes_what_the_page_shows() {
    // Its database is this test's alone.
    let (redis, postgres) = (RedisServer::start(), PostgresServer::start());
    let steps = steps(&fs::read_to_string(PAGE).unwrap());
    assert!(steps.len() >= 10, "{steps:#?}");
    let blocks = steps
        .iter()
        .enumerate()
        .map(|(number, step)| format!("echo '{MARK}{number}'\n{}\n", step.script));
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{}", blocks.collect::<String>())]);
    shell.current_dir(folder.path()).env("PATH", path).env("REDIS_URL", redis.url());
    for name in ["REDIS_PASSWORD", "REDIS_USERNAME", "LEASEHOLD_NAMESPACE", "LEASEHOLD_LOCK"] {
        shell.env_remove(name);
    }
    shell
        .env("PGHOST", postgres.socket_folder())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres");
    shell.env("PGPORT", "5432").env("PGOPTIONS", "--client-min-messages=warning");
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let out = finished(&mut shell).out;
    for (number, step) in steps.iter().enumerate() {
        let written = out.split(MARK).find(|part| part.starts_with(&format!("{number}\n")));
        let written = written.unwrap_or_else(|| panic!("step {number} was not reached: {out}"));
        for expected in &step.lines {
            let found = written.lines().any(|line| fits(line, expected));
            assert!(found, "not written: {expected}\nby:\n{}\nbut:\n{written}", step.script);
        }
    }
}

#[test]
fn lines_fit_by_their_parts() {
    assert!(fits("a  b 12 c", "a b … c"));
    assert!(!fits("a c b", "a b … c"));
}
