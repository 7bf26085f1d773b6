use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Every script, by its path in this repository.
fn scripts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> =
        ["crates/redis/src/lua", "crates/quorum/src/lua", "crates/fencing/src/lua"]
            .map(|path| root.join(path))
            .into();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of scripts") {
            let path = entry.expect("a script").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).expect("in the repository").display().to_string();
            found.push((name, fs::read_to_string(&path).expect("a text")));
        }
    }
    found
}

/// A script without its comments.
fn code(script: &str) -> String {
    script
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The number that a script has behind some words.
pub(super) fn number_in(file: &str, words: &str) -> usize {
    let all = scripts();
    let (_, script) = all.iter().find(|(name, _)| name.ends_with(file)).expect("a script");
    let rest = script.split(words).nth(1).unwrap_or_else(|| panic!("{words:?} in {file}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// Each pattern of the scripts, and the files that have it.
pub(super) fn patterns() -> BTreeMap<String, Vec<String>> {
    let scripts: Vec<_> = scripts().into_iter().map(|(name, text)| (name, code(&text))).collect();
    let all: String = scripts.iter().map(|(_, code)| &**code).collect();
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for (name, code) in &scripts {
        for call in ["match(", "find("] {
            for rest in code.split(call).skip(1) {
                let arguments = arguments(rest);
                if arguments.get(3).is_some_and(|plain| plain == "true") {
                    continue;
                }
                found.entry(pattern(&arguments[1], &all)).or_default().push(name.clone());
            }
        }
        for rest in code.split("gsub(").skip(1) {
            found.entry(pattern(&arguments(rest)[1], &all)).or_default().push(name.clone());
        }
        assert!(!code.contains("gmatch"), "{name}: this test does not know gmatch");
    }
    found
}

/// The text of an argument, or of the constant that it is.
fn pattern(argument: &str, all: &str) -> String {
    let literal = argument.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    if let Some(literal) = literal {
        return literal.to_owned();
    }
    let constant = format!("local {argument} = '");
    let rest = all.split(&constant).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("{argument:?} is no constant pattern"));
    rest.split('\'').next().expect("its end").to_owned()
}

/// The arguments of a call, whose text begins behind its parenthesis.
fn arguments(rest: &str) -> Vec<String> {
    let (mut all, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for c in rest.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '{' | '[' if !quoted => depth += 1,
            ')' | '}' | ']' if !quoted && depth == 0 => break,
            ')' | '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        all.last_mut().expect("an argument").push(c);
    }
    all.iter().map(|argument| argument.trim().to_owned()).collect()
}
