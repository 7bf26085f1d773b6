use leasehold_core::AcquisitionId;

use crate::RedisServer;

/// The text of a lock, as `lua/lease/grant.lua` of the core describes it.
///
/// Whatever stands there can be read and written: tests put in what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockText {
    /// `w` if others wait, `k` if the lock is only kept closed, both or none.
    pub flags: String,
    /// The last token of the last grant.
    pub counter: String,
    /// The number of holds, and of its last change, if there ever was more than one.
    pub holds: Option<(u64, u64)>,
    /// Until when acquisitions are marked as withdrawn, in milliseconds of the server's time.
    pub marks: Option<u64>,
    /// When the key expires, in milliseconds of the server's time; 0 if never.
    pub expires: String,
    /// The last lease, unless it was ended.
    pub lease: Option<LeaseText>,
}

/// The part of a [`LockText`] that is there while somebody holds the lock, and for an expired
/// lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseText {
    /// The acquisition that holds the lock, with its word.
    pub holder: String,
    /// The first token of its block.
    pub fence: u64,
    /// When it was granted, in microseconds of the server's time.
    pub since: u64,
    /// When it expires, in milliseconds of the server's time.
    pub end: u64,
    /// The label of the holder's runtime.
    pub label: String,
}

impl LockText {
    /// The text under the key of a lease.
    ///
    /// # Panics
    ///
    /// If there is none, or it is not understood.
    #[must_use]
    pub fn of(server: &RedisServer, key: &str) -> Self {
        Self::find(server, key).expect("the text of a lock")
    }

    /// The text under the key of a lease, if there is one.
    ///
    /// # Panics
    ///
    /// If it is not understood.
    #[must_use]
    pub fn find(server: &RedisServer, key: &str) -> Option<Self> {
        let text: Option<String> = server.query(&["GET", key]);
        text.map(|text| Self::read(&text).unwrap_or_else(|| panic!("{key}: {text:?}")))
    }

    /// Understands a text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (notes, mut rest) = text.strip_prefix("v4 x")?.split_once(' ')?;
        let flags = notes.chars().filter(|note| ['w', 'k'].contains(note)).collect();
        let (mut holds, mut marks) = (None, None);
        if notes.contains('m') {
            let (before, until) = rest.rsplit_once(' ')?;
            (rest, marks) = (before, Some(until.parse().ok()?));
        }
        if notes.contains('h') {
            let (before, held) = rest.rsplit_once(' ')?;
            let (count, number) = held.split_once('/')?;
            (rest, holds) = (before, Some((count.parse().ok()?, number.parse().ok()?)));
        }
        let bare = |number: &str| match number.trim_start_matches('0') {
            "" => "0".to_owned(),
            other => other.to_owned(),
        };
        let mut parts = rest.splitn(7, ' ');
        let (counter, expires) = (bare(parts.next()?), bare(parts.next()?));
        let lease = match parts.next() {
            None => None,
            Some(fence) => Some(LeaseText {
                fence: fence.parse().ok()?,
                since: parts.next()?.parse().ok()?,
                end: parts.next()?.parse().ok()?,
                holder: parts.next()?.into(),
                label: parts.next()?.into(),
            }),
        };
        Some(Self { flags, counter, holds, marks, expires, lease })
    }

    /// Puts another text in the place of that under the key of a lease.
    ///
    /// # Panics
    ///
    /// If there is none, or it is not understood.
    pub fn change(server: &RedisServer, key: &str, change: impl FnOnce(&mut Self)) {
        let mut text = Self::of(server, key);
        change(&mut text);
        server.command(&["SET", key, &text.write(), "KEEPTTL"]);
    }

    fn write(&self) -> String {
        let Self { flags, counter, holds, marks, expires, lease } = self;
        let has = |note: char, is_there: bool| if is_there { note } else { '-' };
        let notes: String = [
            has('w', flags.contains('w')),
            has('k', flags.contains('k')),
            has('h', holds.is_some()),
            has('m', marks.is_some()),
        ]
        .into_iter()
        .collect();
        let lease = lease.as_ref().map(|LeaseText { holder, fence, since, end, label }| {
            format!(" {fence:016} {since:016} {end:013} {holder} {label}")
        });
        let holds = holds.map(|(count, number)| format!(" {count:010}/{number:020}"));
        let marks = marks.map(|until| format!(" {until:013}"));
        let behind: String = [lease, holds, marks].into_iter().flatten().collect();
        format!("v4 x{notes}--- {counter:0>16} {expires:0>13}{behind}")
    }

    /// The last token of the last grant.
    ///
    /// # Panics
    ///
    /// If the counter is none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.counter.parse().expect("a token")
    }

    /// The lease.
    ///
    /// # Panics
    ///
    /// If nobody holds the lock.
    #[must_use]
    pub fn lease(&self) -> &LeaseText {
        self.lease.as_ref().expect("somebody holds the lock")
    }

    /// Whether an acquisition has the lease.
    #[must_use]
    pub fn is_held_by(&self, id: AcquisitionId) -> bool {
        let holder = |lease: &LeaseText| AcquisitionId::of_stored(&lease.holder);
        self.lease.as_ref().and_then(holder) == Some(id)
    }
}
