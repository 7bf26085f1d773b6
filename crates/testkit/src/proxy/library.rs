//! The library's scripts, by which the proxy tells its commands.

use crate::faulty::CommandKind;

/// The library's own list of what makes a script.
#[path = "../../../core/src/redis/scripts.rs"]
#[expect(dead_code, reason = "the preflight is no command")]
mod scripts;

/// What the list makes of the text of a script.
mod script {
    /// A script as it is sent: by digest or with its text.
    #[derive(Debug)]
    pub(super) struct Script {
        pub(super) text: String,
        pub(super) digest: String,
    }

    impl Script {
        pub(super) fn new(text: String) -> Self {
            let digest = redis::Script::new(&text).get_hash().to_owned();
            Self { text, digest }
        }
    }
}

/// The kind of command that the words of a request send; `None` for one of nobody's business.
pub(super) fn kind(words: &[&[u8]]) -> Option<CommandKind> {
    let [verb, script, ..] = words else { return None };
    let means = |(script_of, _): &&(&script::Script, CommandKind)| {
        if verb.eq_ignore_ascii_case(b"EVALSHA") {
            script.eq_ignore_ascii_case(script_of.digest.as_bytes())
        } else {
            verb.eq_ignore_ascii_case(b"EVAL") && *script == script_of.text.as_bytes()
        }
    };
    table().iter().find(means).map(|(_, kind)| *kind)
}

fn table() -> [(&'static script::Script, CommandKind); 8] {
    [
        (&scripts::ACQUIRE, CommandKind::Acquire),
        (&scripts::HEARTBEAT, CommandKind::Heartbeat),
        (&scripts::HOLD, CommandKind::Hold),
        (&scripts::RELEASE, CommandKind::Release),
        (&scripts::RENEW, CommandKind::Renew),
        (&scripts::WITHDRAW, CommandKind::Withdraw),
        (&scripts::INSPECT, CommandKind::Inspect),
        (&scripts::FORCE_RELEASE, CommandKind::ForceRelease),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_by_digest_and_by_text() {
        for (script, expected) in table() {
            let (digest, text) = (script.digest.as_bytes(), script.text.as_bytes());
            assert_eq!(kind(&[b"evalsha", digest, b"1"]), Some(expected));
            assert_eq!(kind(&[b"EVAL", text, b"1"]), Some(expected));
            assert_eq!(kind(&[b"EVAL", digest, b"1"]), None);
        }
        assert_eq!(kind(&[b"PING"]), None);
        assert_eq!(kind(&[b"GET", b"a"]), None);
    }
}
