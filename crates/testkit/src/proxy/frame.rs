use std::mem;

/// The most bytes that a message may have.
const MOST: usize = 64 << 20;

/// Splits a stream of RESP2 or RESP3 into its messages, however it was chopped.
///
/// An attribute belongs to the value behind it. A line that is no RESP is a message, too: an inline
/// command.
#[derive(Debug)]
pub(super) struct Splitter {
    bytes: Vec<u8>,
    /// Up to where the first message is known.
    known: usize,
    /// How many values are yet to come before it is complete.
    missing: u64,
    /// Whether all that was read is a message, whatever it is.
    raw: bool,
}

/// What came is no RESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotResp;

impl Splitter {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), known: 0, missing: 1, raw: false }
    }

    /// One that takes every read for a message.
    pub(super) fn raw() -> Self {
        Self { raw: true, ..Self::new() }
    }

    /// Takes what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if it is there.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, NotResp> {
        if self.raw {
            let all = mem::take(&mut self.bytes);
            return Ok((!all.is_empty()).then_some(all));
        }
        while self.missing > 0 {
            let Some(value) = value(&self.bytes[self.known..])? else {
                return if self.bytes.len() > MOST { Err(NotResp) } else { Ok(None) };
            };
            self.known += value.length;
            self.missing = (self.missing + value.children).saturating_sub(value.counts);
        }
        let rest = self.bytes.split_off(mem::take(&mut self.known));
        self.missing = 1;
        Ok(Some(mem::replace(&mut self.bytes, rest)))
    }
}

/// A value, or the head of one that has children.
struct Head {
    length: usize,
    children: u64,
    /// 0 for an attribute, which is no value.
    counts: u64,
}

/// Reads the value at the beginning of `bytes`, if all of it is there.
fn value(bytes: &[u8]) -> Result<Option<Head>, NotResp> {
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let (line, length) = (&bytes[..end], end + 2);
    let Some((kind, text)) = line.split_first() else {
        return Ok(Some(Head { length, children: 0, counts: 1 }));
    };
    let head = |children, counts| Ok(Some(Head { length, children, counts }));
    match kind {
        b'$' | b'!' | b'=' => Ok(match number(text)? {
            Some(size) => {
                let length = usize::try_from(size).map_err(|_| NotResp)? + length + 2;
                (bytes.len() >= length).then_some(Head { length, children: 0, counts: 1 })
            }
            None => Some(Head { length, children: 0, counts: 1 }),
        }),
        b'*' | b'~' | b'>' => head(number(text)?.unwrap_or(0), 1),
        b'%' => head(2 * number(text)?.unwrap_or(0), 1),
        b'|' => head(2 * number(text)?.unwrap_or(0), 0),
        _ => head(0, 1),
    }
}

/// A size; `None` for that of a value that is not there.
fn number(text: &[u8]) -> Result<Option<u64>, NotResp> {
    if text == b"-1" {
        return Ok(None);
    }
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number <= MOST as u64).map(Some).ok_or(NotResp)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Messages of every kind, one behind the other.
    const MESSAGES: [&str; 16] = [
        "+OK\r\n",
        "-ERR no\r\n",
        ":-3\r\n",
        "$0\r\n\r\n",
        "$4\r\na\r\nb\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*2\r\n*1\r\n:1\r\n$1\r\na\r\n",
        "%2\r\n+a\r\n*2\r\n:1\r\n:2\r\n+b\r\n_\r\n",
        "~1\r\n#t\r\n",
        "|1\r\n+ttl\r\n:3\r\n*2\r\n,1.5\r\n(12345678901234567890\r\n",
        ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n\r\n\r\n",
        "=7\r\ntxt:a\r\n\r\n",
        "!5\r\nERR a\r\n",
        "PING\r\n",
    ];

    fn split(chunks: impl IntoIterator<Item = Vec<u8>>) -> Vec<String> {
        let (mut splitter, mut seen) = (Splitter::new(), Vec::new());
        for chunk in chunks {
            splitter.push(&chunk);
            while let Some(message) = splitter.next().unwrap() {
                seen.push(String::from_utf8(message).unwrap());
            }
        }
        assert!(splitter.bytes.is_empty(), "{splitter:?}");
        seen
    }

    #[test]
    fn whole_messages_come_out_as_they_went_in() {
        assert_eq!(split([MESSAGES.concat().into_bytes()]), MESSAGES);
    }

    #[test]
    fn what_is_no_resp_is_refused() {
        for text in ["*x\r\n", "$?\r\n", "$99999999999\r\n", "%-2\r\n"] {
            let mut splitter = Splitter::new();
            splitter.push(text.as_bytes());
            assert_eq!(splitter.next(), Err(NotResp), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_chopping_gives_the_same_messages(
            picks in prop::collection::vec(0..MESSAGES.len(), 0..20),
            sizes in prop::collection::vec(1..9_usize, 1..40),
        ) {
            let expected: Vec<_> = picks.iter().map(|pick| MESSAGES[*pick]).collect();
            let mut bytes = expected.concat().into_bytes();
            let mut sizes = sizes.iter().cycle();
            let mut chunks = Vec::new();
            while !bytes.is_empty() {
                let size = sizes.next().copied().unwrap_or(1).min(bytes.len());
                let rest = bytes.split_off(size);
                chunks.push(mem::replace(&mut bytes, rest));
            }
            prop_assert_eq!(split(chunks), expected);
        }
    }
}
