//! What another program wrote as the label of a holder cannot reach a terminal.

use leasehold_testkit::{LockText, RedisServer};

use crate::support::{LOCK, finished, leasehold};

/// Clears the screen, rings, goes back to the line's beginning, begins a sequence in one byte of C1, ends the line, and
/// turns what follows around.
const HOSTILE: &str = "a\u{1b}[2J\u{7}\r\u{9b}2J\u{85}\u{2028}\u{202e}b\nc";

const PRINTERS: [&[&str]; 8] = [
    &["ls"],
    &["ls", "--json"],
    &["show", LOCK],
    &["show", LOCK, "--json"],
    &["run", "--try", LOCK, "--", "true"],
    &["run", "--wait", "50ms", LOCK, "--", "true"],
    &["run", "--once", "1h", LOCK, "--", "true"],
    &["release", LOCK, "--yes"],
];

#[test]
fn no_printer_shows_it_as_it_stands() {
    let server = RedisServer::start();
    let at = |words: &[&str]| finished(leasehold(words).env("REDIS_URL", server.url()));
    at(&["run", "--min-hold", "1h", LOCK, "--", "true"]).well();
    let key = format!("leasehold:{{{LOCK}}}:lease");
    LockText::change(&server, &key, |text| {
        let lease = text.lease.as_mut().expect("it is kept closed");
        lease.label = HOSTILE.into();
    });
    let mut shown = 0;
    for words in PRINTERS {
        let ended = at(words);
        let text = format!("{}{}", ended.out, ended.err);
        let bad = text.chars().find(|c| *c != '\n' && !leasehold::is_printable(*c));
        assert_eq!(bad, None, "{words:?}: {text:?}");
        assert!(!text.contains("\nc"), "the label ends no line, {words:?}: {text:?}");
        shown += usize::from(text.contains("[2J"));
    }
    assert!(shown >= 5, "the label is shown, without what it hides: {shown}");
}
