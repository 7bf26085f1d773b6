//! Servers and certificates that are set up wrong: the line says what to change, in the words of this program.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use leasehold_testkit::{
    RedisServer, SentinelGroup,
    proxy::{Action, FaultProxy, Rule},
};
use tempfile::TempDir;

use crate::support::{Finished, LOCK, Running, finished, leasehold, settled};

fn run(url: &str, options: &[&str]) -> Finished {
    let words = [&["--url", url], options, &["run", "--try", LOCK, "--", "true"]].concat();
    finished(&mut leasehold(&words))
}

#[test]
fn a_command_that_is_missing_is_a_matter_of_configuration() {
    let server = RedisServer::builder().without("GETEX").start();
    let ended = run(&server.url(), &[]);
    let text = ended.complaint(78);
    assert!(text.contains("refuses GETEX, which keeps leases"), "{text}");
    assert!(text.contains("rename-command"), "{text}");
}

/// Files with what a client of a server shows and trusts.
fn files(server: &RedisServer) -> (TempDir, [String; 3]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = server.certificate();
    let ca = server.ca_pem().expect("an authority");
    let written =
        [("ca", ca), ("certificate", &*certificate), ("key", &*key)].map(|(name, pem)| {
            let path = folder.path().join(name);
            fs::write(&path, pem).expect("a file");
            path.display().to_string()
        });
    (folder, written)
}

#[test]
fn certificates_are_told_by_the_options() {
    let server = RedisServer::builder().tls().arg("tls-auth-clients", "yes").start();
    let (folder, [ca, certificate, key]) = files(&server);
    let empty = folder.path().join("empty").display().to_string();
    fs::write(Path::new(&empty), "").expect("a file");
    let is_empty = format!("--tls-ca: {empty} is empty");
    let pfx = folder.path().join("pfx").display().to_string();
    fs::write(Path::new(&pfx), [0x30, 0x82, 4, 1, 2, 1, 3, 0x30]).expect("a file");
    let (both, pkcs12) =
        (["--tls-cert", &pfx, "--tls-key", &pfx], "openssl pkcs12 -in FILE -nodes");
    let shown = ["--tls-cert", &certificate, "--tls-key", &key];
    let swapped = ["--tls-cert", &key, "--tls-key", &certificate];
    for (options, says) in [
        (vec!["--tls-ca", &*empty], &*is_empty),
        (both.to_vec(), pkcs12),
        ([&["--tls-cert", &*certificate], &both[2..]].concat(), pkcs12),
        (vec!["--tls-ca", "/no/such/file"], "--tls-ca: /no/such/file cannot be read"),
        (vec!["--tls-ca", &*ca], "give it one with --tls-cert and --tls-key"),
        (shown.to_vec(), "with --tls-ca"),
        ([&["--tls-ca", &*ca], &swapped[..]].concat(), "--tls-cert: "),
    ] {
        let ended = run(&server.url(), &options);
        let text = ended.complaint(78);
        assert!(text.contains(says), "no {says:?} in: {text}");
        assert!(!text.contains("tls_"), "{text}");
    }
    assert_eq!(run(&server.url(), &[&["--tls-ca", &*ca], &shown[..]].concat()).code, 0);
}

/// Otherwise the password goes over the network in clear.
#[test]
fn certificates_for_an_address_without_tls_are_refused() {
    let server = RedisServer::builder().tcp().arg("requirepass", "hush-hush").start();
    let other = RedisServer::builder().tls().start();
    let (_folder, [ca, certificate, key]) = files(&other);
    let plain = server.url();
    let sentinel = plain.replace("redis://", "redis+sentinel://") + "/m";
    for url in [&*plain, &sentinel, &plain.replace("redis://", "redis+cluster://")] {
        for (options, says) in [
            (&["--tls-ca", &*ca][..], "--tls-ca is given"),
            (&["--tls-cert", &*certificate, "--tls-key", &*key], "--tls-cert is given"),
        ] {
            for command in [&["health"][..], &["doctor"], &["run", LOCK, "--", "true"]] {
                let words = [&["--url", url], options, command].concat();
                let ended = finished(leasehold(&words).env("REDIS_PASSWORD", "hush-hush"));
                let text = ended.complaint(78);
                assert!(text.contains(says) && text.contains("rediss"), "{text}");
            }
        }
    }
    let sent = server.query::<String>(&["INFO", "commandstats"]);
    assert!(!sent.contains("cmdstat_hello") && !sent.contains("cmdstat_sentinel"), "{sent}");
}

/// A key of EC on P-521, as openssl makes it.
#[test]
fn a_key_that_is_not_supported_is_not_told_as_damaged() {
    let server = RedisServer::builder().tls().start();
    let (folder, [ca, ..]) = files(&server);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (certificate, key) = (path("p521.crt"), path("p521.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521", "-nodes"])
        .args(["-days", "1", "-subj", "/CN=client", "-keyout", &key, "-out", &certificate])
        .output();
    assert!(made.expect("openssl is there").status.success());
    let options = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
    let text = run(&server.url(), &options).complaint(78).to_owned();
    assert!(
        text.contains("is of a kind that is not supported") && text.contains("P-384"),
        "{text}"
    );
}

/// No option is for the login of Sentinels.
#[test]
fn a_login_of_sentinels_is_told_with_what_helps() {
    let group = SentinelGroup::start();
    for sentinel in group.sentinels() {
        sentinel.command(&["ACL", "SETUSER", "default", "resetpass", ">hush-hush"]);
    }
    let ended = run(&group.url(), &[]);
    let text = ended.complaint(78);
    assert!(text.contains("REDIS_URL") && text.contains("sentinel_pass"), "{text}");
    assert!(!text.contains("--password-file"), "{text}");
    let examined = finished(&mut leasehold(["--url", &group.url(), "doctor"]));
    assert!(examined.out.contains("Sentinels refuse the login"), "{examined:?}");
    assert!(examined.out.contains("sentinel_pass"), "{examined:?}");
    assert!(!examined.out.contains("start it again"), "{examined:?}");
    let url = format!("{}?sentinel_pass=hush-hush", group.url());
    let refused = run(&url, &[]);
    assert!(refused.complaint(64).contains("whole address by REDIS_URL"), "{refused:?}");
    finished(leasehold(["health"]).env("REDIS_URL", &url)).well();
    let half = format!("{}?sentinel_user=bob", group.url());
    let mistaken = finished(leasehold(["health"]).env("REDIS_URL", &half));
    let text = mistaken.complaint(64);
    assert!(text.contains("sentinel_pass") && text.contains("REDIS_URL alone"), "{text}");
    assert!(!text.contains("--password-file"), "{text}");
}

#[test]
fn sentinels_without_tls_are_told_as_such() {
    let group = SentinelGroup::start();
    let url = group.url().replace("redis+sentinel", "rediss+sentinel");
    let ended = run(&url, &[]);
    let text = ended.complaint(78);
    assert!(text.contains("does not speak TLS") && text.contains("instead of rediss"), "{text}");
    let examined = finished(&mut leasehold(["--url", &url, "doctor"]));
    assert!(examined.out.contains("does not speak TLS"), "{examined:?}");
}

/// As some proxies do.
#[test]
fn a_subscription_that_is_swallowed_is_told() {
    let server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::before(&server);
    proxy.inject(Rule::new(Action::Drop).containing("SUBSCRIBE").always());
    let ended = finished(&mut leasehold(["--url", &proxy.url(), "health"]));
    let text = ended.complaint(69);
    assert!(text.contains("SUBSCRIBE was not answered") && text.contains("proxy"), "{text}");
    let examined = finished(&mut leasehold(["--url", &proxy.url(), "doctor"]));
    assert_eq!(examined.code, 2, "{examined:?}");
    for words in ["danger: reach (P8)", "no messages about grants", "proxy"] {
        assert!(examined.out.contains(words), "{examined:?}");
    }
}

#[test]
fn a_proxy_that_answers_in_place_of_scripts_is_told() {
    let server = RedisServer::builder().tcp().start();
    for (command, answer) in [("EVAL", "+OK"), ("EVALSHA", "+OK"), ("EVAL", "$-1"), ("EVAL", ":1")]
    {
        let proxy = FaultProxy::before(&server);
        let answers = Action::Answer(format!("{answer}\r\n").into_bytes());
        proxy.inject(Rule::new(answers).containing(format!("\r\n{command}\r\n")).always());
        let examined = finished(&mut leasehold(["--url", &proxy.url(), "doctor"]));
        assert_eq!(examined.code, 2, "{examined:?}");
        let answered = format!("the answer to {command} is not that of the script");
        for words in ["danger: scripts", &answered, "let a proxy before the server"] {
            assert!(examined.out.contains(words), "no {words:?}: {examined:?}");
        }
    }
}

#[test]
fn a_script_that_is_swallowed_is_told_by_its_command() {
    let server = RedisServer::builder().tcp().start();
    for action in [Action::Drop, Action::Cut] {
        let proxy = FaultProxy::before(&server);
        proxy.inject(Rule::new(action).containing("\r\nEVAL\r\n").always());
        let ended = finished(&mut leasehold(["--url", &proxy.url(), "health"]));
        let text = ended.complaint(69);
        assert!(text.contains("no answer to EVAL: ") && text.contains("proxy"), "{text}");
        let examined = finished(&mut leasehold(["--url", &proxy.url(), "doctor"]));
        assert_eq!(examined.code, 2, "{examined:?}");
        for words in ["danger: scripts", "no answer to EVAL: ", "proxy"] {
            assert!(examined.out.contains(words), "no {words:?}: {examined:?}");
        }
    }
}

#[test]
fn a_server_with_one_connection_left_is_told() {
    let server = RedisServer::builder().tcp().start();
    let fields = server.query::<String>(&["INFO", "clients"]);
    let clients = fields.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    let clients: u32 = clients.expect("a number").trim().parse().expect("a number");
    // Those that are there, and one: the sockets that a server keeps for itself do not count.
    server.command(&["CONFIG", "SET", "maxclients", &(clients + 1).to_string()]);
    let examined = finished(&mut leasehold(["--url", &server.url(), "doctor"]));
    assert_eq!(examined.code, 2, "{examined:?}");
    assert!(examined.out.contains("of 4 connections that were made at one time, the server took"));
    assert!(examined.out.contains("raise maxclients"), "{examined:?}");
}

/// What this process cannot read says nothing about the server.
#[test]
fn a_file_that_is_removed_during_a_wait_is_no_fault_of_the_server() {
    let server = RedisServer::builder().tls().arg("requirepass", "hush-hush").start();
    let (folder, [ca, ..]) = files(&server);
    let begun = folder.path().join("begun");
    let url = server.url_with("", "hush-hush", 0);
    let script = format!("touch {}; exec sleep 100", begun.display());
    let other = folder.path().join("other").display().to_string();
    fs::copy(&ca, &other).expect("a copy");
    let mut holder = leasehold(["--tls-ca", &other, "run", LOCK, "--", "sh", "-c", &script]);
    let _holder = Running::begun(holder.env("REDIS_URL", &url), &begun);
    let password = folder.path().join("password").display().to_string();
    for removed in [&ca, &password] {
        fs::copy(&other, &ca).expect("a copy");
        fs::write(&password, "hush-hush").expect("a file");
        let words = ["--tls-ca", &ca, "--password-file", &password, "run", LOCK, "--", "true"];
        let waiter = Running::start(leasehold(words).env("REDIS_URL", server.url()));
        settled(|| {
            let mut show = leasehold(["--tls-ca", &other, "show", LOCK, "--json"]);
            let shown = finished(show.env("REDIS_URL", &url)).json();
            (shown["waiters"][0]["position"] == 1).then_some(())
        });
        fs::remove_file(removed).expect("it was there");
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let ended = waiter.end();
        let text = ended.last_complaint(69);
        assert!(text.contains("this process has not reached the server"), "{text}");
        assert!(text.contains(removed.as_str()) && !text.contains("the server has not"), "{text}");
        assert!(!text.contains("for another login"), "{text}");
    }
}

/// What this program never heard of is not told to its users.
#[test]
fn a_login_that_is_refused_is_told_in_words_of_this_program() {
    let server = RedisServer::builder().tcp().arg("requirepass", "hush-hush").start();
    for password in [None, Some("wrong-one")] {
        for command in ["health", "doctor"] {
            let mut program = leasehold(["--url", &server.url(), command]);
            password.map(|password| program.env("REDIS_PASSWORD", password));
            let ended = finished(&mut program);
            let text = format!("{} {}", ended.out, ended.err);
            assert!(text.contains("--password-file"), "{text}");
            for word in ["provider", "give the address", "wrong-one"] {
                assert!(!text.contains(word), "{text}");
            }
        }
    }
}

/// As in a container without ca-certificates, or with a variable that is left over. The client library reads them
/// in any case.
#[test]
fn authorities_of_the_system_that_cannot_be_read_are_told_with_what_helps() {
    let server = RedisServer::builder().tls().arg("tls-auth-clients", "yes").start();
    let (folder, [ca, certificate, key]) = files(&server);
    let none = folder.path().join("none").display().to_string();
    let shown = ["--tls-cert", &certificate, "--tls-key", &key];
    let with_ca = [&["--tls-ca", &*ca], &shown[..]].concat();
    for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        let run = |options: &[&str]| {
            let url = server.url();
            let words = [&["--url", &*url], options, &["run", LOCK, "--", "true"]].concat();
            finished(leasehold(&words).env(variable, &none))
        };
        for (options, helps) in
            [(&with_ca, "that of --tls-ca"), (&shown.to_vec(), "unset SSL_CERT_DIR")]
        {
            let ended = run(options);
            let text = ended.complaint(78);
            for says in [variable, &none, "install ca-certificates", helps] {
                assert!(text.contains(says), "no {says:?} in: {text}");
            }
            assert!(!text.contains("socket"), "{text}");
        }
    }
    let url = server.url();
    let words = [&["--url", &*url], &with_ca[..], &["health"]].concat();
    finished(leasehold(&words).env("SSL_CERT_FILE", &ca)).well();
    // Nor at Sentinels, which have connections of their own.
    let group = SentinelGroup::with_tls();
    let (_folder, [ca, ..]) = files(&group.servers()[0]);
    let url = group.url();
    for options in [&["--tls-ca", &*ca][..], &[]] {
        let words = [&["--url", &*url], options, &["health"]].concat();
        let ended = finished(leasehold(&words).env("SSL_CERT_FILE", &none));
        assert!(ended.complaint(78).contains("install ca-certificates"), "{ended:?}");
    }
}

/// A program of a shell with few of something.
fn limited(limit: &str, words: &[&str]) -> Command {
    let script = format!("{limit}; exec \"$@\"");
    let program = leasehold(words);
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(program.get_program()).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in program.get_envs() {
        command.env_remove(name);
    }
    command
}

/// However few there are, a line says what to do about it.
#[test]
fn a_limit_of_open_files_is_told_with_what_raises_it() {
    let server = RedisServer::builder().tcp().start();
    // A name is looked up in files.
    let named = server.url().replace("127.0.0.1", "localhost");
    for files in 4..20 {
        for words in [&["health"][..], &["ls"], &["run", "--wait", "1s", LOCK, "--", "true"]] {
            for url in [&server.url(), &named] {
                let mut command = limited(&format!("ulimit -n {files}"), words);
                let ended = finished(command.env("REDIS_URL", url));
                // Where another test has left a file open, the loader of the program may have none itself.
                if ended.code == 0 || ended.err.contains("shared libraries") {
                    continue;
                }
                let text = ended.complaint(78);
                assert!(text.contains("ulimit -n"), "{files} {words:?}: {text}");
                assert!(!text.contains("another address"), "{files} {words:?}: {text}");
            }
        }
    }
}

/// A thread of its own has the stack.
#[test]
fn a_small_limit_of_the_stack_is_enough() {
    let server = RedisServer::builder().arg("appendonly", "yes").start();
    for words in [&["health"][..], &["ls"], &["doctor"], &["run", LOCK, "--", "true"]] {
        let mut command = limited("ulimit -s 64", words);
        finished(command.env("REDIS_URL", server.url())).well();
    }
}

/// The rights that docs/operations.md lists are those of the default namespace.
#[test]
fn rights_to_keys_and_channels_are_told_with_the_namespace() {
    let server = RedisServer::builder().tcp().start();
    for (keys, channels, names) in
        [("~leasehold:*", "&*", "~shop:*"), ("~*", "&leasehold:runtime:*", "&shop:runtime:*")]
    {
        let user = ["ACL", "SETUSER", "locks", "reset", "on", ">hush-hush", "+@all"];
        server.command(&[&user[..], &["resetchannels", keys, channels]].concat());
        for command in ["health", "doctor"] {
            let mut program = leasehold(["--url", &server.url(), "--user", "locks", command]);
            program.env("REDIS_PASSWORD", "hush-hush").env("LEASEHOLD_NAMESPACE", "shop");
            let ended = finished(&mut program);
            let text = format!("{} {}", ended.out, ended.err);
            assert_eq!(ended.code, if command == "health" { 78 } else { 2 }, "{text}");
            assert!(text.contains(names) && !text.contains("<namespace>"), "{command}: {text}");
        }
    }
}

/// As a server that is stopped does, for which the system accepts.
#[test]
fn a_connection_that_is_accepted_and_not_greeted_is_told_as_such() {
    let server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::before(&server);
    proxy.inject(Rule::new(Action::Drop).containing("\r\nHELLO\r\n").always());
    let ended = finished(&mut leasehold(["--url", &proxy.url(), "health"]));
    let text = ended.complaint(69);
    assert!(text.contains("the connection was accepted, and HELLO was not answered"), "{text}");
    assert!(text.contains("stands still") && text.contains("proxy"), "{text}");
    assert!(!text.contains("the address is right"), "{text}");
}

/// Who has been answered by the server has the right address.
#[test]
fn a_server_that_has_answered_is_not_looked_for_elsewhere() {
    let server = RedisServer::builder().tcp().start();
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "2"]);
    let ended = run(&server.url(), &[]);
    let text = ended.complaint(69);
    assert!(text.contains("NOREPLICAS") && !text.contains("another address"), "{text}");
    let ended = run("redis://127.0.0.1:1", &[]);
    let text = ended.complaint(69);
    assert!(text.contains("another address is written as --url"), "{text}");
}
