//! Passwords come from the environment or a file, and are not in the command line of any process.

use std::fs;

use leasehold_testkit::RedisServer;

use crate::support::{LOCK, finished, leasehold};

fn server() -> RedisServer {
    RedisServer::builder().arg("requirepass", "hush-hush").start()
}

#[test]
fn a_password_comes_from_the_environment_or_a_file() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "hush-hush\n").unwrap();
    let url = server.url();
    let run = ["run", LOCK, "--", "true"];
    finished(leasehold(run).env("REDIS_URL", server.url_with("", "hush-hush", 0))).well();
    finished(leasehold(run).env("REDIS_URL", &url).env("REDIS_PASSWORD", "hush-hush")).well();
    finished(leasehold(run).arg("--").env("REDIS_URL", &url).env("REDIS_PASSWORD", "hush-hush"))
        .well();
    let file = file.to_str().unwrap();
    // The file counts before the variable.
    finished(
        leasehold(["--url", &url, "--password-file", file, "ls"]).env("REDIS_PASSWORD", "wrong"),
    )
    .well();
    finished(&mut leasehold(["--url", &url, "--user", "default", "--password-file", file, "ls"]))
        .well();
    let named = leasehold(["ls"])
        .env("REDIS_URL", &url)
        .env("REDIS_USERNAME", "default")
        .env("REDIS_PASSWORD", "hush-hush")
        .output()
        .unwrap();
    assert!(named.status.success());
}

#[test]
fn a_wrong_password_is_a_matter_of_configuration() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (wrong, empty) = (folder.path().join("wrong"), folder.path().join("empty"));
    fs::write(&wrong, "nope-nope\n").unwrap();
    fs::write(&empty, "\n").unwrap();
    let with_file = |file: &str| {
        finished(leasehold(["--password-file", file, "ls"]).env("REDIS_URL", server.url()))
    };
    let none = finished(leasehold(["ls"]).env("REDIS_URL", server.url()));
    let of_variable = finished(
        leasehold(["ls"]).env("REDIS_URL", server.url()).env("REDIS_PASSWORD", "nope-nope"),
    );
    for ended in [none, of_variable, with_file(wrong.to_str().unwrap())] {
        let text = ended.complaint(78);
        assert!(text.contains("--password-file") && !text.contains("nope"), "{text}");
    }
    assert!(with_file(empty.to_str().unwrap()).complaint(78).contains("is empty"));
    let binary = folder.path().join("binary");
    fs::write(&binary, b"p\xffw\n").unwrap();
    let ended = with_file(binary.to_str().unwrap());
    let text = ended.complaint(78);
    assert!(text.contains("is not valid UTF-8") && !text.contains("this user may read"), "{text}");
    assert!(with_file("/no/such/file").complaint(78).contains("/no/such/file"));
    let user = finished(leasehold(["--user", "bob", "ls"]).env("REDIS_URL", server.url()));
    assert!(user.complaint(64).contains("REDIS_PASSWORD"));
}

/// The server would only say that it is wrong.
#[test]
fn what_is_no_part_of_a_password_is_told_before_the_login() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "\u{feff}hush-hush\n").unwrap();
    let words = ["--password-file", file.to_str().unwrap(), "health"];
    let of_file = finished(leasehold(words).env("REDIS_URL", server.url()));
    assert!(of_file.complaint(78).contains("begins with a byte order mark"), "{of_file:?}");
    let mut health = leasehold(["health"]);
    let of_variable =
        finished(health.env("REDIS_URL", server.url()).env("REDIS_PASSWORD", "hush-hush\n"));
    assert!(of_variable.complaint(78).contains("has a line break"), "{of_variable:?}");
}

#[test]
fn a_password_in_the_command_line_is_refused() {
    let server = server();
    let ended = finished(&mut leasehold(["--url", &server.url_with("", "hush-hush", 0), "ls"]));
    let text = ended.complaint(64);
    assert!(text.contains("REDIS_PASSWORD") && !text.contains("hush"), "{text}");
}

/// As compose files and CI write them.
#[test]
fn a_variable_that_is_empty_counts_as_none() {
    let server = RedisServer::start();
    let mut ls = leasehold(["ls"]);
    for name in ["REDIS_USERNAME", "REDIS_PASSWORD", "LEASEHOLD_NAMESPACE"] {
        ls.env(name, "");
    }
    finished(ls.env("REDIS_URL", server.url())).well();
}

/// The server takes any password of its default user then, on all connections.
#[test]
fn a_password_that_a_server_does_not_need_is_no_failure() {
    let server = RedisServer::start();
    finished(leasehold(["ls"]).env("REDIS_URL", server.url()).env("REDIS_PASSWORD", "any")).well();
}

/// Advice about logins is for failures of logins.
#[test]
fn another_failure_of_the_configuration_gets_no_advice_about_logins() {
    let server = RedisServer::start();
    let ended = finished(leasehold(["ls"]).env("REDIS_URL", server.url_with("", "", 99)));
    let text = ended.complaint(78);
    assert!(text.contains("database") && !text.contains("login"), "{text}");
}

/// A pipe gives its text once, and is read for each connection; one that nobody writes to blocks.
#[test]
fn a_password_file_that_is_no_file_is_refused_at_once() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for file in [pipe.to_str().unwrap(), folder.path().to_str().unwrap(), "/dev/zero"] {
        let words = ["--password-file", file, "ls"];
        let ended = finished(leasehold(words).env("REDIS_URL", server.url()));
        let text = ended.complaint(78);
        assert!(text.contains("is a pipe, a folder or a device"), "{text}");
        assert!(text.contains("REDIS_PASSWORD"), "{text}");
    }
}

/// Of several logins one counts, and to change another one does not help.
#[test]
fn a_login_that_is_refused_is_told_with_where_it_comes_from() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "nope-nope\n").unwrap();
    let file = file.to_str().unwrap();
    let refused = |words: &[&str], variables: &[(&str, &str)]| {
        let mut program = leasehold(words);
        program.env("REDIS_URL", server.url()).envs(variables.iter().copied());
        let text = finished(&mut program).complaint(78).to_owned();
        assert!(!text.contains("nope"), "{text}");
        text
    };
    let password = ("REDIS_PASSWORD", "nope-nope");
    let text = refused(&["--password-file", file, "ls"], &[password]);
    let of_file = format!("the login is that of --password-file {file} (user default)");
    assert!(text.contains(&of_file) && !text.contains("REDIS_PASSWORD"), "{text}");
    let text = refused(&["--user", "bob", "--password-file", file, "ls"], &[]);
    assert!(text.contains("(user bob)"), "{text}");
    let text = refused(&["ls"], &[password, ("REDIS_USERNAME", "bob")]);
    assert!(text.contains("the login is that of REDIS_PASSWORD (user bob)"), "{text}");
    let url = server.url_with("", "nope-nope", 0);
    let text = refused(&["ls"], &[("REDIS_URL", &url)]);
    assert!(text.contains("the login is that of the address in REDIS_URL"), "{text}");
    let text = refused(&["ls"], &[]);
    assert!(!text.contains("the login is that") && text.contains("for another login"), "{text}");
}
