//! Nothing of the contract is forgotten: every case is listed, every subject has its suite.

use std::{collections::BTreeSet, fs, path::Path};

use leasehold_core::FenceSettings;
use leasehold_testkit::contract::{CASES, Capability, MemorySubject, RedisSubject, StoreUnderTest};

fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(path).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.map(|file| file.to_string_lossy().into_owned()).collect()
}

/// What follows `prefix` in the lines of a text, up to the first character of another word.
fn words_after<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
    text.lines().filter_map(move |line| {
        let rest = line.trim_start().strip_prefix(prefix)?;
        Some(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
    })
}

#[test]
fn every_case_is_in_the_table() {
    let mut written = BTreeSet::new();
    for file in rust_files("crates/testkit/src/contract/cases") {
        let part = Path::new(&file).file_stem().unwrap().to_string_lossy().into_owned();
        let names: Vec<_> = words_after(&source(&file), "pub(crate) async fn ").collect();
        written.extend(names.into_iter().map(|name| format!("{part}::{name}")));
    }
    let listed: BTreeSet<_> = CASES.iter().map(|case| format!("{case:?}")).collect();
    assert_eq!(written, listed);
    assert_eq!(listed.len(), CASES.len(), "a case is listed twice");
}

#[test]
fn every_subject_has_its_suite() {
    let sources = |folder| rust_files(folder).iter().map(|file| source(file)).collect::<String>();
    let written = sources("crates/testkit/src/contract");
    // Those on real servers differ in their servers, and have names of their own.
    let on_servers = written.lines().filter(|line| line.contains(" = ServerSubject<"));
    let subjects: BTreeSet<_> = words_after(&written, "impl StoreUnderTest for ")
        .chain(on_servers.flat_map(|line| words_after(line, "pub type ")))
        .collect();
    let suites: BTreeSet<_> =
        words_after(&sources("tests/stores/contract"), "leasehold_testkit::contract_suite!(")
            .collect();
    assert_eq!(subjects, suites);
    assert_eq!(subjects.len(), 6);
}

#[tokio::test]
async fn a_subject_of_its_own_leaves_out_what_needs_replicas() {
    for subject in [
        MemorySubject::start(FenceSettings::default()).await,
        RedisSubject::start(FenceSettings::default()).await,
    ] {
        for case in CASES.iter().filter(|case| !case.is_for(subject.capabilities())) {
            assert_eq!(case.needs, [Capability::Replicas], "{subject:?} leaves out {case:?}");
        }
    }
}
