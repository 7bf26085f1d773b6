//! The library's scripts, by which the proxy tells its commands.

use crate::faulty::CommandKind;

/// The library's own list of what makes a script.
#[path = "../../../redis/src/scripts.rs"]
#[expect(dead_code, reason = "the preflight is no command")]
mod scripts;

/// What the list makes of the text of a script.
mod script {
    /// What makes a script ask for the role of its server first.
    const MASTER: &str = include_str!("../../../redis/src/lua/commands/master.lua");

    /// A script as it is sent: by digest or with its text.
    #[derive(Debug)]
    pub(super) struct Script {
        pub(super) text: String,
        pub(super) digest: String,
        /// The same, which first asks for the role of its server.
        pub(super) proving: [String; 2],
    }

    impl Script {
        pub(super) fn new(text: String) -> Self {
            let digest = |text: &str| redis::Script::new(text).get_hash().to_owned();
            let proving = MASTER.to_owned() + &text;
            Self { digest: digest(&text), text, proving: [digest(&proving), proving] }
        }
    }
}

/// The text of the script that runs commands.
pub fn script_of_commands() -> &'static str {
    &scripts::COMMANDS.text
}

/// The text of the script that runs commands of the fast path on keys that are not declared.
pub fn script_of_gathered_commands() -> &'static str {
    &scripts::GATHERED.text
}

/// The kinds of command that the words of a request send; none for one of nobody's business.
pub(super) fn kinds(words: &[&[u8]]) -> Vec<CommandKind> {
    let [verb, script, ..] = words else { return Vec::new() };
    let sends = |of: &script::Script| {
        if verb.eq_ignore_ascii_case(b"EVALSHA") {
            [&of.digest, &of.proving[0]].iter().any(|it| script.eq_ignore_ascii_case(it.as_bytes()))
        } else {
            verb.eq_ignore_ascii_case(b"EVAL")
                && [&of.text, &of.proving[1]].iter().any(|it| *script == it.as_bytes())
        }
    };
    if sends(&scripts::COMMANDS) {
        return batch(words).unwrap_or_default();
    }
    if sends(&scripts::GATHERED) {
        return gathered(words).unwrap_or_default();
    }
    let single = table().iter().find(|(script, _)| sends(script)).map(|(_, kind)| *kind);
    single.into_iter().collect()
}

fn table() -> [(&'static script::Script, CommandKind); 3] {
    [
        (&scripts::RENEW, CommandKind::Renew),
        (&scripts::INSPECT, CommandKind::Inspect),
        (&scripts::FORCE_RELEASE, CommandKind::ForceRelease),
    ]
}

/// The commands of a call of many: behind the keys and two arguments, word by word.
fn batch(words: &[&[u8]]) -> Option<Vec<CommandKind>> {
    one_by_one(words.get(5 + number(words.get(2)?)?..)?)
}

/// The commands of a call that declares no keys: behind their number and so many leases.
fn gathered(words: &[&[u8]]) -> Option<Vec<CommandKind>> {
    one_by_one(words.get(6 + number(words.get(5)?)?..)?)
}

fn number(word: &[u8]) -> Option<usize> {
    str::from_utf8(word).ok()?.parse().ok()
}

fn one_by_one(mut rest: &[&[u8]]) -> Option<Vec<CommandKind>> {
    let mut kinds = Vec::new();
    while let Some(word) = rest.first() {
        let (kind, words) = match *word {
            b"as" => {
                rest = rest.get(4..)?;
                continue;
            }
            b"try" => (CommandKind::Acquire, 3),
            b"acquire" => (CommandKind::Acquire, 4),
            b"heartbeat" => (CommandKind::Heartbeat, 4),
            b"release" => (CommandKind::Release, 3),
            b"keep" => (CommandKind::Release, 4),
            b"next" => (CommandKind::Release, 6),
            b"hold" => (CommandKind::Hold, 6),
            b"withdraw" => (CommandKind::Withdraw, 3),
            _ => return None,
        };
        kinds.push(kind);
        rest = rest.get(words..)?;
    }
    Some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_by_digest_and_by_text() {
        for (script, expected) in table() {
            let (digest, text) = (script.digest.as_bytes(), script.text.as_bytes());
            assert_eq!(kinds(&[b"evalsha", digest, b"1"]), [expected]);
            assert_eq!(kinds(&[b"EVAL", text, b"1"]), [expected]);
            assert_eq!(kinds(&[b"EVAL", digest, b"1"]), []);
        }
        assert_eq!(kinds(&[b"PING"]), []);
        assert_eq!(kinds(&[b"GET", b"a"]), []);
    }

    #[test]
    fn commands_of_one_call_are_told_one_by_one() {
        let digest = scripts::COMMANDS.digest.as_bytes();
        let mut call = vec![&b"EVALSHA"[..], digest, b"12"];
        call.extend([&b"key"[..]; 12]);
        call.extend([&b"604800000"[..], b"channels"]);
        call.extend([&b"release"[..], b"a:1", b"7"]);
        call.extend([&b"withdraw"[..], b"release", b"30000"]);
        call.extend([&b"as"[..], b"30000", b"5000", b"label", b"try", b"a:2", b"0"]);
        let expected = [CommandKind::Release, CommandKind::Withdraw, CommandKind::Acquire];
        assert_eq!(kinds(&call), expected);
    }

    #[test]
    fn commands_of_a_call_without_keys_are_told_one_by_one() {
        let digest = scripts::GATHERED.digest.as_bytes();
        let mut call = vec![&b"EVALSHA"[..], digest, b"0", b"604800000", b"channels", b"2"];
        call.extend([&b"key"[..]; 2]);
        call.extend([&b"release"[..], b"a:1", b"7"]);
        call.extend([&b"as"[..], b"30000", b"5000", b"label", b"acquire", b"a:2", b"0", b"1"]);
        assert_eq!(kinds(&call), [CommandKind::Release, CommandKind::Acquire]);
    }
}
