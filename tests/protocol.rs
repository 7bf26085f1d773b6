//! The page about the protocol agrees with the scripts: its examples are replayed on a server, and its list of their
//! parts is that of the library.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
    io::Write,
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use leasehold_testkit::RedisServer;
use redis::{Parser, Value};

use script::Script;

/// The library's own list of what makes a script.
#[path = "../crates/redis/src/scripts.rs"]
#[expect(dead_code, reason = "the page tells of some of them")]
mod scripts;

/// What the list makes of the text of a script.
mod script {
    /// The text alone.
    #[derive(Debug)]
    pub(super) struct Script(pub(super) String);

    impl Script {
        pub(super) fn new(text: String) -> Self {
            Self(text)
        }
    }
}

const PAGE: &str = include_str!("../docs/protocol.md");

/// Far more than a reply or a message takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The lines of a fenced block, each with its number on the page.
type Block = Vec<(usize, &'static str)>;

/// The blocks of the page with this marker.
fn blocks(marker: &str) -> Vec<Block> {
    let begins = format!("```{marker}");
    let (mut all, mut open) = (Vec::new(), None::<Block>);
    for (number, line) in (1..).zip(PAGE.lines()) {
        match &mut open {
            Some(_) if line == "```" => all.extend(open.take()),
            Some(block) => block.push((number, line)),
            None if line == begins => open = Some(Block::new()),
            None => {}
        }
    }
    all
}

/// The words of a line; those between quotes may have spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

// Scripts ----------------------------------------------------------------------------------------

/// The texts of the scripts, by name, put together as the page says.
fn scripts_of_the_page() -> BTreeMap<String, String> {
    let blocks = blocks("scripts");
    let [block] = &blocks[..] else { panic!("one list of scripts") };
    let (mut texts, mut name) = (BTreeMap::<_, String>::new(), String::new());
    for (_, line) in block {
        let (begun, parts) = line.split_once(" = ").unwrap_or(("", line));
        if !begun.is_empty() {
            begun.clone_into(&mut name);
        }
        let text = texts.entry(name.clone()).or_default();
        text.extend(words(parts).iter().map(|part| text_of(part)));
    }
    texts
}

/// A file of the scripts, or a line between them.
fn text_of(part: &str) -> String {
    let is_file = Path::new(part).extension().is_some_and(|extension| extension == "lua");
    if !is_file {
        return format!("{part}\n");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/redis/src/lua");
    fs::read_to_string(folder.join(part)).unwrap_or_else(|error| panic!("{part}: {error}"))
}

#[test]
fn the_page_lists_the_parts_of_each_script() {
    let sent: [(&str, &Script); 4] = [
        ("commands", &scripts::COMMANDS),
        ("renew", &scripts::RENEW),
        ("inspect", &scripts::INSPECT),
        ("force_release", &scripts::FORCE_RELEASE),
    ];
    let sent = sent.map(|(name, script)| (name.to_owned(), script.0.clone()));
    assert_eq!(scripts_of_the_page(), BTreeMap::from(sent));
}

// Names and values -------------------------------------------------------------------------------

/// What the names in a dialogue stand for.
#[derive(Debug, Default, Clone)]
struct Names {
    /// Those that the page defines, and the digests of scripts.
    defined: BTreeMap<String, String>,
    /// The digits that a reply of the present block had in their place.
    seen: BTreeMap<String, String>,
}

impl Names {
    /// Takes a line `<name> = text` as a definition; the text may have names that are known.
    fn define(&mut self, line: &str) -> bool {
        let Some((name, text)) = line.split_once(" = ") else { return false };
        let name = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
        let (Some(name), Ok(text)) = (name, self.filled(text)) else { return false };
        let Entry::Vacant(new) = self.defined.entry(name.to_owned()) else { return false };
        new.insert(text);
        true
    }

    /// The text with what its names stand for.
    fn filled(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Name(name) => filled.push_str(self.value(name)?),
            }
        }
        Ok(filled)
    }

    fn value(&self, name: &str) -> Result<&str, String> {
        let value = self.defined.get(name).or_else(|| self.seen.get(name));
        value.map(String::as_str).ok_or_else(|| format!("<{name}> stands for nothing yet"))
    }

    /// Whether a reply is the one that is written; names without a value get theirs.
    fn reads(&mut self, written: &str, reply: &str) -> bool {
        let mut rest = reply;
        for piece in pieces(written) {
            let end = match piece {
                Piece::Text(text) => rest.strip_prefix(text),
                Piece::Name(name) => self.reads_name(name, rest),
            };
            let Some(end) = end else { return false };
            rest = end;
        }
        rest.is_empty()
    }

    /// What follows the value of a name.
    fn reads_name<'a>(&mut self, name: &str, text: &'a str) -> Option<&'a str> {
        if let Some(known) = self.defined.get(name) {
            return text.strip_prefix(known.as_str());
        }
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, rest) = text.split_at(end);
        let number: u64 = digits.parse().ok()?;
        let is_it = match name.strip_prefix("ms up to ") {
            Some(most) => number <= most.parse().ok()?,
            None => self.seen.entry(name.to_owned()).or_insert_with(|| digits.to_owned()) == digits,
        };
        is_it.then_some(rest)
    }
}

/// A part of a written text.
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// The parts of a written text: `<…>` is a name.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        let (name, behind) = behind.split_once('>').expect("the end of a name");
        pieces.extend([Piece::Text(before), Piece::Name(name)]);
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

// Dialogues --------------------------------------------------------------------------------------

/// A connection that speaks RESP2 and hides nothing.
struct Connection {
    stream: UnixStream,
    parser: Parser,
}

impl Connection {
    fn to(server: &RedisServer) -> Self {
        let stream = UnixStream::connect(server.socket()).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
        Self { stream, parser: Parser::new() }
    }

    fn send(&mut self, words: &[String]) {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        self.stream.write_all(&command.get_packed_command()).expect("the server reads");
    }

    fn hear(&mut self) -> String {
        let value = self.parser.parse_value(&mut self.stream);
        value.map_or_else(|error| format!("no reply: {error}"), |value| shown(&value))
    }
}

/// A reply as the page writes it.
fn shown(value: &Value) -> String {
    match value {
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
        Value::Array(parts) => {
            let parts: Vec<_> = parts.iter().map(shown).collect();
            format!("[{}]", parts.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// One block, and those who speak in it.
struct Dialogue<'a> {
    server: &'a RedisServer,
    names: Names,
    connections: BTreeMap<&'a str, Connection>,
}

impl<'a> Dialogue<'a> {
    fn new(server: &'a RedisServer, names: &Names) -> Self {
        Self { server, names: names.clone(), connections: BTreeMap::new() }
    }

    /// Plays a line: `who> command`, or `who< reply`.
    fn play(&mut self, line: &'a str) -> Result<(), String> {
        let at = line.find(['<', '>']).ok_or("neither a command nor a reply")?;
        let (who, said) = line.split_at(at);
        let server = self.server;
        let connection = self.connections.entry(who).or_insert_with(|| Connection::to(server));
        if let Some(command) = said.strip_prefix("> ") {
            connection.send(&words(&self.names.filled(command)?));
            return Ok(());
        }
        let written = said.strip_prefix("< ").ok_or("no space behind the mark")?;
        let reply = connection.hear();
        if self.names.reads(written, &reply) {
            Ok(())
        } else {
            Err(format!("the reply is {reply}"))
        }
    }
}

/// The digests of the scripts, which the server then knows.
fn loaded(server: &RedisServer) -> Names {
    let digest = |text: &str| server.query(&["SCRIPT", "LOAD", text]);
    let scripts = scripts_of_the_page().into_iter();
    let defined = scripts.map(|(name, text)| (name, digest(&text))).collect();
    Names { defined, ..Names::default() }
}

#[test]
fn the_examples_are_answered_as_they_are_written() {
    let server = RedisServer::start();
    let mut names = loaded(&server);
    let blocks = blocks("wire");
    let (definitions, scenes) = blocks.split_first().expect("names, then examples");
    for (number, line) in definitions {
        assert!(names.define(line), "docs/protocol.md, line {number}: {line}");
    }
    assert!(scenes.len() >= 9, "{} examples", scenes.len());
    for scene in scenes {
        server.flush_all();
        let mut dialogue = Dialogue::new(&server, &names);
        for (number, line) in scene {
            let played = dialogue.play(line);
            assert_eq!(played, Ok(()), "docs/protocol.md, line {number}: {line}");
        }
    }
}

#[test]
fn each_command_has_an_example() {
    let rest = text_of("commands/rest.lua");
    let (_, sizes) = rest.split_once("local SIZES = {").expect("the sizes of all commands");
    let (sizes, _) = sizes.split_once('}').expect("their end");
    let commands = sizes.split(',').filter_map(|size| size.trim().split(' ').next());
    let said: BTreeSet<_> =
        blocks("wire").concat().iter().flat_map(|(_, line)| line.split(' ')).collect();
    for command in commands {
        assert!(said.contains(command), "no example has {command}");
    }
}

// Controls ---------------------------------------------------------------------------------------

#[test]
fn a_reply_that_differs_is_noticed() {
    let mut names = Names::default();
    assert!(names.define("<A> = a:1"));
    assert!(!names.define("<A> = a:2"), "a name has one meaning");
    assert!(names.reads("[\"<A>\", \"<fence 1>\", <ms up to 9>]", "[\"a:1\", \"17\", 9]"));
    for (written, reply) in [
        ("<fence 1>", "18"),
        ("<fence 1>", "\"17\""),
        ("<fence 2>", ""),
        ("<fence 2>", "-1"),
        ("<ms up to 9>", "10"),
        ("<A>", "a:2"),
        ("[1]", "[1, 2]"),
        ("[1, 2]", "[1]"),
        ("1", "\"1\""),
    ] {
        assert!(!names.reads(written, reply), "{written} is not {reply}");
    }
    assert!(names.reads("<fence 1>", "17"));
    assert!(names.filled("<fence 3>").is_err());
}
