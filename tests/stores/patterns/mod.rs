//! The patterns of the scripts: none does work that grows faster than the text.
//!
//! A text of another program may stand under any key. A pattern of Lua that can share the characters of a text among
//! two of its runs tries every way to share them, and stops the whole server meanwhile.

mod hostile;
mod longest;
mod matcher;
mod source;

use leasehold_testkit::RedisServer;

use self::{hostile::hostile_texts, matcher::Matcher, source::patterns};

/// The pattern by which Leasehold once read the text of a lock: 100 KB of foreign text took it minutes.
const SLOW: &str = "^(w?)(k?)([^ ,]*)(%S*) (%d+)(.*)$";

/// The steps of a text that is twice as long, in percent, in the worst case; and the short text.
fn worst_growth(pattern: &str) -> (u64, String) {
    let steps = |text: &[u8]| Matcher::new(pattern, text).find().1;
    let growth = |(short, long): (Vec<u8>, Vec<u8>)| {
        (100 * steps(&long) / steps(&short), String::from_utf8_lossy(&short).into_owned())
    };
    hostile_texts(100).zip(hostile_texts(200)).map(growth).max().expect("some texts")
}

#[test]
fn no_pattern_takes_more_than_linear_time() {
    let all = patterns();
    assert!(all.len() > 20, "{} patterns were found", all.len());
    for (pattern, files) in all {
        let (growth, text) = worst_growth(&pattern);
        assert!(growth < 220, "{pattern:?} of {files:?}: {growth} % of the steps, {text:?}");
    }
}

#[test]
fn control_a_pattern_with_two_runs_side_by_side_is_found() {
    for slow in [SLOW, "^%d*%d* ", "%S+ x$"] {
        let (growth, text) = worst_growth(slow);
        assert!(growth > 300, "{slow:?}: {growth} %, {text:?}");
    }
}

/// Finds each text by each pattern, as the server's Lua does.
const FIND: &str = "\
local found = {}
for i = 2, #ARGV do
  local parts = {string.find(ARGV[i], ARGV[1])}
  for at, part in ipairs(parts) do parts[at] = tostring(part) end
  found[i - 1] = parts
end
return found";

#[test]
fn the_matcher_of_this_test_finds_what_the_server_finds() {
    let server = RedisServer::start();
    let texts: Vec<_> = hostile_texts(20).step_by(7).chain(hostile::well_formed()).collect();
    let mut client = redis::Client::open(server.url()).expect("an address");
    for pattern in patterns().into_keys().chain([SLOW.to_owned()]) {
        let found: Vec<Vec<Vec<u8>>> = redis::cmd("EVAL")
            .arg(FIND)
            .arg(0)
            .arg(&pattern)
            .arg(&texts)
            .query(&mut client)
            .expect("an answer");
        for (text, found) in texts.iter().zip(found) {
            let here = Matcher::new(&pattern, text).find().0;
            assert_eq!(here, found, "{pattern:?} in {:?}", String::from_utf8_lossy(text));
        }
    }
}
