//! What is written down agrees with what is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Folders that git ignores: what tools build and download.
const IGNORED: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Every file with an extension below some folders, relative to the workspace, in order.
fn files(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !IGNORED.iter().any(|ignored| path.ends_with(ignored)) {
                    walk(&path, extension, found);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    for folder in folders {
        walk(&root().join(folder), extension, &mut found);
    }
    found.sort();
    found
}

/// Every page that people read: those of the root and those of `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&["docs"], "md");
    pages
        .extend(["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from));
    pages
}

/// The folders of the crates with the names that `docs/dependencies.md` gives them.
fn crates() -> Vec<(PathBuf, String)> {
    let mut crates = vec![(PathBuf::new(), "facade".to_owned())];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().file_name().into_string().unwrap();
        let name = if folder == "reentrant-lock" { "lock".into() } else { folder.clone() };
        crates.push((Path::new("crates").join(folder), name));
    }
    crates.sort();
    crates
}

/// The words between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What follows each occurrence of some text.
fn after<'a>(text: &'a str, what: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(what).map(move |(at, _)| &text[at + what.len()..])
}

/// The leading digits and dots of a text, without a dot at the end.
fn number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

// Versions ---------------------------------------------------------------------------------------

/// What sqlx needs, and so the feature `postgres`.
const RUST_OF_SQLX: &str = "1.94";

#[test]
fn pages_tell_the_present_versions() {
    let version = env!("CARGO_PKG_VERSION");
    let rust = env!("CARGO_PKG_RUST_VERSION");
    for page in pages() {
        let text = read(&page);
        for written in after(&text, "Rust ").map(number).filter(|written| !written.is_empty()) {
            assert!([rust, RUST_OF_SQLX].contains(&written), "{}: {written}", page.display());
        }
    }
    assert!(read("README.md").contains(&format!("Rust {rust} or newer")));
    assert!(read("CONTRIBUTING.md").contains(&format!("Rust {rust} or newer")));
    assert!(read("CHANGELOG.md").contains(version), "the changelog does not know {version}");
    assert!(read("clippy.toml").contains(&format!("msrv = \"{rust}\"")));
    let internal = format!("version = \"={version}\", path = \"crates/");
    assert_eq!(read("Cargo.toml").matches(&internal).count(), 8, "versions of the members");
}

/// An install line that needs a registry, where nothing is before the first publication.
fn needs_a_registry(line: &str) -> bool {
    let line = line.trim();
    let is_ours = |word: &str| word.starts_with("leasehold");
    if line.starts_with("cargo install") || line.starts_with("cargo add") {
        let is_local = line.contains("--path") || line.contains("--git");
        return line.split_whitespace().skip(2).any(is_ours) && !is_local;
    }
    let Some((name, from)) = line.split_once('=') else { return false };
    let is_manifest = is_ours(name.trim()) && !name.trim().contains([' ', '.', ':']);
    is_manifest && from.contains('"') && !from.contains("path =") && !from.contains("git =")
}

/// Every page and every README of a crate.
fn pages_and_readmes() -> Vec<PathBuf> {
    let readmes = files(&["crates", "examples", "benches"], "md");
    pages().into_iter().chain(readmes).collect()
}

#[test]
fn every_install_line_works_as_written() {
    let releasing = read("docs/releasing.md");
    let published = releasing.contains("\nPublished: yes");
    let mut seen = 0;
    for page in pages_and_readmes() {
        let text = read(&page);
        // The page that tells of both forms.
        if page.ends_with("docs/releasing.md") {
            continue;
        }
        for line in text.lines() {
            assert!(published || !needs_a_registry(line), "{}: {line}", page.display());
        }
        for path in after(&text, "leasehold = { path = \"") {
            let name = page.file_stem().unwrap().to_str().unwrap();
            assert!(releasing.contains(&format!("`{name}`")) || name == "README", "{name}");
            seen += 1;
            assert!(path.starts_with("../leasehold\""), "{}: {path:.40}", page.display());
        }
        for path in after(&text, "cargo install --path ") {
            seen += 1;
            let folder = path.split_whitespace().next().unwrap().trim_end_matches('`');
            assert!(root().join(folder).join("Cargo.toml").is_file(), "{}", page.display());
        }
    }
    assert!(published || seen >= 6, "only {seen} install lines");
}

#[test]
fn a_line_that_needs_a_registry_is_known() {
    for line in [
        "leasehold = \"0.1\"",
        "leasehold = { version = \"0.1\", features = [\"tower\"] }",
        "cargo install leasehold-cli",
        "cargo add leasehold",
    ] {
        assert!(needs_a_registry(line), "{line}");
    }
    for line in [
        "leasehold = { path = \"../leasehold\" }",
        "cargo install --path crates/cli",
        "cargo add leasehold --path ../leasehold",
        "cargo install cargo-deny",
        "leasehold run NAME -- sh -c \"x=1\"",
    ] {
        assert!(!needs_a_registry(line), "{line}");
    }
}

#[test]
fn pages_tell_the_oldest_server() {
    let check = read("crates/redis/src/role.rs");
    let pair = after(&check, "const OLDEST: (u32, u32) = (").next().unwrap();
    let oldest = pair.split_once(')').unwrap().0.replace(", ", ".");
    let script = read("scripts/test.sh");
    assert!(script.contains(&format!("readonly OLDEST_REDIS=\"{oldest}\"")));
    for page in ["README.md", "docs/operations.md", "CHANGELOG.md"] {
        assert!(read(page).contains(&oldest), "{page} does not name Redis {oldest}");
    }
}

#[test]
fn pages_tell_which_servers_are_tested() {
    let script = read("scripts/servers.sh");
    let listed = after(&script, "readonly SERVERS=(").next().unwrap().split("\n)").next().unwrap();
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('|').next())
        .collect();
    let [first @ .., last] = &names[..] else { panic!("no server is listed") };
    let sentence = format!("{} and {last}", first.join(", "));
    for page in ["README.md", "docs/operations.md", "docs/fault-matrix.md", "scripts/prove.sh"] {
        assert!(read(page).contains(&sentence), "{page} does not name {sentence}");
    }
}

/// `scripts/servers.sh` runs the test programs into which the testkit's launcher is linked.
#[test]
fn only_the_testkit_chooses_the_server_of_a_test() {
    let launcher = read("crates/testkit/src/server/version.rs");
    let script = read("scripts/servers.sh");
    let variable = after(&script, "readonly SERVER_VARIABLE=\"").next().unwrap();
    let variable = variable.split('"').next().unwrap();
    assert!(launcher.contains(&format!("const PROGRAM: &str = \"{variable}\";")));
    for file in files(&["tests", "crates", "examples"], "rs") {
        let starts_one = read(&file).contains(&format!("{0}redis-server{0}", '"'));
        // The other file only names the program in messages.
        let is_launcher = ["version.rs", "redis_server.rs"]
            .iter()
            .any(|name| file.ends_with(Path::new("testkit/src/server").join(name)));
        assert!(!starts_one || is_launcher, "{} starts a server by itself", file.display());
    }
}

// Links and files --------------------------------------------------------------------------------

#[test]
fn every_document_is_linked() {
    let index = read("docs/README.md");
    for page in files(&["docs"], "md") {
        let below = page.strip_prefix("docs").unwrap().display().to_string();
        let linked = below == "README.md" || index.contains(&format!("({below})"));
        assert!(linked, "{} is not linked from docs/README.md", page.display());
    }
}

/// The definitions of links below a page: label and target.
fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    lines.filter(|(label, _)| !label.contains(']'))
}

/// What the links of a page lead to: those in the text, and the definitions below it.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let inline = after(text, "](").map(|rest| rest.split(')').next().unwrap());
    inline.chain(definitions(text).map(|(_, link)| link))
}

/// The labels that a page uses as `[text][label]`, and those that it defines.
fn labels(text: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let used = after(text, "][").map(|rest| rest.split(']').next().unwrap());
    // An address such as `host[:port][/database]` has no label.
    let used = used.filter(|label| !label.starts_with('/')).collect();
    (used, definitions(text).map(|(label, _)| label).collect())
}

#[test]
fn every_link_is_defined_and_leads_to_a_page_of_the_documentation() {
    let elsewhere = read("src/guide/links.md") + &read("src/guide/pictures.md");
    let (_, elsewhere) = labels(&elsewhere);
    for page in pages() {
        let text = read(&page);
        let (used, defined) = labels(&text);
        assert_eq!(used, defined, "{}", page.display());
        assert!(defined.is_subset(&elsewhere), "src/guide/links.md lacks one of {defined:?}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || link.starts_with("http") {
                continue;
            }
            let target = root().join(page.parent().unwrap()).join(file);
            assert!(target.exists(), "{} links to {link}", page.display());
        }
    }
}

/// A reader knows at once whether to go on.
#[test]
fn every_page_says_for_whom_it_is() {
    // Decisions are for those who change the code: their index says so.
    for page in files(&["docs"], "md").iter().filter(|page| !page.starts_with("docs/adr")) {
        let text = read(page);
        let second = text.lines().filter(|line| !line.is_empty()).nth(1).unwrap();
        assert!(second.starts_with("For "), "{} begins with {second:?}", page.display());
    }
}

/// `scripts/pictures.py` draws them from records of runs.
#[test]
fn pictures_show_what_was_seen() {
    let (story, picture) = (read("docs/pictures/story.txt"), read("docs/pictures/story.svg"));
    let fences = after(&story, "fence ").map(number).filter(|fence| !fence.is_empty());
    let fences: BTreeSet<&str> = fences.collect();
    assert_eq!(fences.len(), 2, "{fences:?}");
    for fence in fences {
        let end = &fence[fence.len() - 7..];
        assert!(picture.contains(&format!("…{end}")), "story.svg lacks {fence}");
    }
    let bench = read("docs/pictures/hand-overs.json");
    let ours = after(&bench, "/leasehold\", \"value\": ").map(number).next().unwrap();
    let (thousands, rest) = ours.split('.').next().unwrap().split_at(ours.find('.').unwrap() - 3);
    let ours = format!("{thousands},{rest}");
    for page in ["docs/pictures/hand-overs.svg", "README.md"] {
        assert!(read(page).contains(&ours), "{page} does not tell {ours} hand-overs");
    }
}

#[test]
fn the_readme_is_short_and_its_first_program_too() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 220, "{} lines", readme.lines().count());
    let program = after(&readme, "```rust").next().unwrap().split("```").next().unwrap();
    let lines = program.lines().skip(1).count();
    assert!(lines <= 20, "{lines} lines");
    assert!(program.contains(".with(async |") && program.contains(".fence()"));
}

#[test]
fn the_package_has_what_the_readme_links_to() {
    let (manifest, readme) = (read("Cargo.toml"), read("README.md"));
    let excluded = after(&manifest, "\nexclude = [").next().unwrap().split(']').next().unwrap();
    for link in links(&readme) {
        for left_out in excluded.split('"').filter(|path| path.starts_with('/')) {
            assert!(!format!("/{link}").starts_with(left_out), "the package lacks {link}");
        }
    }
}

#[test]
fn files_and_commands_that_pages_name_exist() {
    for page in pages() {
        let text = read(&page);
        for word in quoted(&text).filter(|word| !word.contains([' ', '*', '…', '<', '\n'])) {
            let of_the_tree = ["tests/", "scripts/", "crates/", "docs/", "examples/"]
                .iter()
                .any(|at| word.starts_with(at));
            assert!(!of_the_tree || root().join(word).exists(), "{} names {word}", page.display());
        }
        for name in after(&text, "--example ").filter_map(|rest| rest.split_whitespace().next()) {
            let name = name.trim_matches('`');
            let (file, folder) = (
                format!("examples/{name}.rs"),
                format!("examples/services/examples/{name}/main.rs"),
            );
            let exists = [file, folder].iter().any(|path| root().join(path).exists());
            assert!(exists, "{} runs the example {name}", page.display());
        }
    }
}

#[test]
fn every_source_file_is_a_module() {
    for (folder, _) in crates() {
        let source = folder.join("src");
        let mut reached = BTreeSet::new();
        let library = source.join("lib.rs");
        let root_file =
            if root().join(&library).exists() { library } else { source.join("main.rs") };
        reach(&root_file, &source, &mut reached);
        for file in files(&[source.to_str().unwrap()], "rs") {
            assert!(reached.contains(&file), "no `mod` declares {}", file.display());
        }
    }
}

/// Collects a module's file and those of the modules that it declares, which lie in `folder`.
fn reach(file: &Path, folder: &Path, reached: &mut BTreeSet<PathBuf>) {
    reached.insert(file.to_owned());
    let (text, mut is_elsewhere) = (read(file), false);
    for line in text.lines() {
        // A module with a path is the file of another crate.
        is_elsewhere |= line.trim().starts_with("#[path");
        let Some(declared) = line.trim().strip_suffix(';') else { continue };
        let Some((visibility, name)) = declared.split_once("mod ") else { continue };
        if !(visibility.is_empty() || visibility.starts_with("pub")) || name.contains(' ') {
            continue;
        }
        if std::mem::take(&mut is_elsewhere) {
            continue;
        }
        let (below, beside) = (folder.join(name), folder.join(format!("{name}.rs")));
        let inner = if root().join(&beside).exists() { beside } else { below.join("mod.rs") };
        reach(&inner, &below, reached);
    }
}

#[test]
fn every_script_is_included_and_states_its_contract() {
    let sources: Vec<String> = files(&["crates"], "rs").iter().map(read).collect();
    let architecture = read("docs/architecture.md");
    for script in files(&["crates"], "lua") {
        let name = script.file_name().unwrap().to_str().unwrap();
        let endings = [format!("\"{name}\""), format!("/{name}\"")];
        let included = |source: &String| endings.iter().any(|ending| source.contains(ending));
        assert!(sources.iter().any(included), "no source includes {}", script.display());
        assert!(architecture.contains(name), "docs/architecture.md does not name {name}");
    }
    for script in files(&["crates", "examples"], "lua") {
        let text = read(&script);
        let title = format!("-- {}: ", script.file_stem().unwrap().to_str().unwrap());
        for head in [title.as_str(), "\n-- KEYS ", "\n-- ARGV ", "\n-- Returns ", "\n-- Why: "] {
            assert!(text.contains(head), "{} has no {head:?}", script.display());
        }
    }
}

// Tables -----------------------------------------------------------------------------------------

#[test]
fn metrics_are_documented() {
    let (names, page) = (read("crates/core/src/metric/names.rs"), read("docs/metrics.md"));
    let existing: BTreeSet<&str> =
        after(&names, "= \"").map(|rest| rest.split('"').next().unwrap()).collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `leasehold_"));
    let documented: BTreeSet<String> =
        rows.map(|row| format!("leasehold_{}", row.split('`').next().unwrap())).collect();
    assert_eq!(existing, documented.iter().map(String::as_str).collect());

    for file in ["metric/series.rs", "lease/state.rs", "store/error.rs"] {
        let source = read(Path::new("crates/core/src").join(file));
        for value in after(&source, " => \"").map(|rest| rest.split('"').next().unwrap()) {
            let label = value.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(!label || page.contains(&format!("`{value}`")), "no label value {value}");
        }
    }
}

/// The page says for each topic of a finding what to do.
#[test]
fn findings_of_a_diagnosis_are_documented() {
    let (findings, page) = (read("crates/doctor/src/finding.rs"), read("docs/operations.md"));
    let topics = after(&findings, "impl Topic {").next().unwrap();
    let table = after(&page, "\n| about | found | what to do |\n").next().unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(1);
    let documented: BTreeSet<&str> =
        rows.map(|row| row.trim_matches('|').split('|').next().unwrap().trim()).collect();
    let labels = after(topics, " => \"").map(|rest| rest.split('"').next().unwrap());
    assert_eq!(labels.collect::<BTreeSet<_>>(), documented);
}

#[test]
fn dependencies_are_documented() {
    let mut existing = BTreeMap::<String, BTreeSet<String>>::new();
    let unpublished =
        [("benches", "benches"), ("examples", "examples"), ("examples/services", "services")]
            .map(|(folder, name)| (folder.into(), name.into()));
    for (folder, name) in crates().into_iter().chain(unpublished) {
        let manifest = read(folder.join("Cargo.toml"));
        let (mut normal, mut dev) = (BTreeSet::new(), BTreeSet::new());
        let mut section = "";
        for line in manifest.lines() {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
                continue;
            }
            let key = line.split(['.', ' ', '=']).next().unwrap();
            if key.is_empty() || key.starts_with('#') || section.starts_with("workspace") {
                continue;
            }
            if section.ends_with("dev-dependencies") {
                dev.insert(key.to_owned());
            } else if section.ends_with("dependencies") {
                normal.insert(key.to_owned());
            }
        }
        for key in &normal {
            existing.entry(key.clone()).or_default().insert(name.clone());
        }
        for key in dev.difference(&normal) {
            existing.entry(key.clone()).or_default().insert(format!("{name} (dev)"));
        }
    }

    let page = read("docs/dependencies.md");
    let mut documented = BTreeMap::<String, BTreeSet<String>>::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [dependency, users, why, _, licence] = cells[..] else { panic!("{row}") };
        assert!(!why.is_empty() && !licence.is_empty(), "{row}");
        let users = users.split(", ").map(str::to_owned).collect();
        documented.insert(quoted(dependency).next().unwrap().to_owned(), users);
    }
    for dependency in existing.keys().chain(documented.keys()) {
        let (used, told) = (existing.get(dependency), documented.get(dependency));
        assert_eq!(used, told, "users of {dependency}: in the manifests, and on the page");
    }
}

#[test]
fn promises_and_tests_name_each_other() {
    let page = read("docs/guarantees.md");
    let promised: BTreeSet<&str> = after(&page, "\n## P").map(number).collect();
    let tests = read("tests/promises/main.rs");
    let tested: BTreeSet<&str> =
        after(&tests, "\nmod p").map(number).filter(|promise| !promise.is_empty()).collect();
    assert_eq!(promised, tested);
}

// Decisions --------------------------------------------------------------------------------------

/// The numbers of the decisions, as the names of their pages tell them.
fn decisions() -> Vec<String> {
    let pages = files(&["docs/adr"], "md");
    let names = pages.iter().map(|page| page.file_name().unwrap().to_str().unwrap());
    names.map(|name| name.split('-').next().unwrap().to_owned()).collect()
}

/// The decisions that a text cites as `ADR` with a number.
fn cited(text: &str) -> impl Iterator<Item = &str> {
    after(text, "ADR ").map(number).filter(|decision| !decision.is_empty())
}

#[test]
fn decisions_are_few_and_numbered_without_gaps() {
    let decisions = decisions();
    let counted: Vec<String> = (1..=decisions.len()).map(|at| format!("{at:04}")).collect();
    assert_eq!(decisions, counted);
    assert!(decisions.len() <= 50, "{} decisions: join those that belong together", counted.len());
    for (page, decision) in files(&["docs/adr"], "md").iter().zip(decisions) {
        assert!(read(page).starts_with(&format!("# {decision}: ")), "{}", page.display());
    }
}

/// A reader comes from the code to the reason.
#[test]
fn code_cites_every_decision() {
    let mut missing: BTreeSet<String> = decisions().into_iter().collect();
    for extension in ["rs", "lua", "sh"] {
        for file in files(&["src", "crates", "scripts"], extension) {
            for decision in cited(&read(&file)) {
                missing.remove(decision);
            }
        }
    }
    assert!(missing.is_empty(), "no code cites {missing:?}");
}

#[test]
fn every_cited_decision_has_a_page() {
    let decisions = decisions();
    let folders = ["src", "crates", "tests", "benches", "examples", "scripts"];
    let code = ["rs", "lua", "sh", "pl", "py"].map(|extension| files(&folders, extension));
    for file in code.into_iter().flatten().chain(pages_and_readmes()) {
        for decision in cited(&read(&file)) {
            let is_there = decisions.iter().any(|known| known == decision);
            assert!(is_there, "{} cites decision {decision}", file.display());
        }
    }
}

// House rules ------------------------------------------------------------------------------------

/// The rows of the fault matrix stand in their files as `row! { name: … }`, or as `id: "…"`.
#[test]
fn the_fault_matrix_has_the_rows_of_the_suite() {
    let ids = |text: &str| {
        after(text, "row! {\n    ")
            .chain(after(text, "    id: \""))
            .filter_map(|rest| rest.split([':', '"']).next().map(|name| name.replace('_', "-")))
            .collect::<Vec<_>>()
    };
    let suite: BTreeSet<String> =
        files(&["tests/servers/faults", "crates/cli/tests/cli/faults"], "rs")
            .iter()
            .flat_map(|file| ids(&read(file)))
            .collect();
    let table = read("docs/fault-matrix.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: BTreeSet<String> = rows.filter(|id| *id != "row").map(str::to_owned).collect();
    assert_eq!(rows, suite, "`scripts/prove.sh matrix` writes docs/fault-matrix.md");
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let folders = ["src", "crates", "tests", "benches", "examples", "scripts", "docs"];
    for extension in ["rs", "lua", "sh", "md"] {
        for file in files(&folders, extension) {
            let lines = read(&file).lines().count();
            assert!(lines <= 600, "{} has {lines} lines", file.display());
        }
    }
    for decision in files(&["docs/adr"], "md") {
        assert!(read(&decision).lines().count() <= 25, "{} is long", decision.display());
    }
}

#[test]
fn only_clock_and_entropy_lift_the_ban_on_time_and_chance() {
    for (folder, name) in crates() {
        if name == "testkit" {
            continue;
        }
        for file in files(&[folder.join("src").to_str().unwrap()], "rs") {
            let door = file.ends_with("clock.rs") || file.ends_with("entropy.rs");
            let lifts = read(&file).contains("clippy::disallowed_methods");
            assert!(door || !lifts, "{} lifts the ban", file.display());
        }
    }
}
