//! Where the program cannot work, `cargo install` says so in one line.

use std::process::Command;

use crate::support::finished;

#[test]
fn the_build_fails_in_one_line_where_there_is_no_unix() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs"), "-o"]);
    assert!(rustc.arg(&script).status().unwrap().success());
    let told = |unix: Option<&str>| {
        let mut build = Command::new(&script);
        build.env_remove("CARGO_CFG_UNIX").envs(unix.map(|unix| ("CARGO_CFG_UNIX", unix)));
        let out = finished(build.stdout(std::process::Stdio::piped())).well();
        out.lines()
            .filter_map(|line| line.strip_prefix("cargo::error="))
            .map(str::to_owned)
            .collect()
    };
    let (elsewhere, here): (Vec<String>, Vec<String>) = (told(None), told(Some("")));
    assert!(matches!(&elsewhere[..], [line] if line.contains("WSL")), "{elsewhere:?}");
    assert!(here.is_empty(), "{here:?}");
}
