use crate::faulty::CommandKind;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Reply,
    Push,
}

/// A message as rules see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) side: Side,
    /// The commands; those of the request for a reply.
    pub(super) kinds: &'a [CommandKind],
    /// The words; those of the request for a reply.
    pub(super) text: &'a [u8],
}

/// The strings with which a message begins: all words of a request, the first ones of a push.
pub(super) fn words(message: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let Some((line, mut rest)) = line(message) else { return words };
    if !matches!(line.first(), Some(b'*' | b'>')) {
        return line.split(|byte| *byte == b' ').collect();
    }
    while let Some((size, behind)) = string_size(rest) {
        let Some((word, behind)) = behind.split_at_checked(size) else { break };
        words.push(word);
        rest = behind.get(2..).unwrap_or_default();
    }
    words
}

fn string_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (head, behind) = line(bytes)?;
    let size = head.strip_prefix(b"$")?;
    Some((str::from_utf8(size).ok()?.parse().ok()?, behind))
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

/// Whether `text` occurs in `bytes`.
pub(super) fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|part| part == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_with_its_words() {
        let request = b"*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n";
        assert_eq!(words(request), [&b"SET"[..], b"a\r\nb", b""]);
        assert_eq!(words(b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"), [&b"subscribe"[..], b"c"]);
        assert_eq!(words(b"PING now\r\n"), [&b"PING"[..], b"now"]);
        assert_eq!(words(b"*-1\r\n"), [b""; 0]);
        assert!(contains(b"abc", b"bc") && !contains(b"abc", b"cb"));
    }
}
