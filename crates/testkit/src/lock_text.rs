use leasehold_core::AcquisitionId;

use crate::RedisServer;

/// The field `lock` in the hash of a lock, as `lua/lease/grant.lua` of the core describes it.
///
/// Whatever stands there can be read and written: tests put in what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockText {
    /// Which other fields and keys matter; see `grant.lua`.
    pub flags: String,
    /// The last token of the last grant.
    pub counter: String,
    /// When the hash expires, in milliseconds of the server's time; 0 if never.
    pub expires: String,
    /// The last lease, unless it was ended.
    pub lease: Option<LeaseText>,
}

/// The part of a [`LockText`] that is there while somebody holds the lock, and for an expired lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseText {
    /// The acquisition that holds the lock.
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
        Self::find(server, key).expect("the hash of a lock")
    }

    /// The text under the key of a lease, if there is one.
    ///
    /// # Panics
    ///
    /// If it is not understood.
    #[must_use]
    pub fn find(server: &RedisServer, key: &str) -> Option<Self> {
        let text: Option<String> = server.query(&["HGET", key, "lock"]);
        text.map(|text| Self::read(&text).unwrap_or_else(|| panic!("{key}: {text:?}")))
    }

    /// Understands a text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(7, ' ');
        let counter = parts.next()?.trim_start_matches(|letter| "wkhm".contains(letter));
        let flags = text[..text.find(counter)?].into();
        let expires = parts.next()?.into();
        let lease = match parts.next() {
            None => None,
            Some(holder) => Some(LeaseText {
                holder: holder.into(),
                fence: parts.next()?.parse().ok()?,
                since: parts.next()?.parse().ok()?,
                end: parts.next()?.parse().ok()?,
                label: parts.next()?.into(),
            }),
        };
        Some(Self { flags, counter: counter.into(), expires, lease })
    }

    /// Puts another text in the place of that under the key of a lease.
    ///
    /// # Panics
    ///
    /// If there is none, or it is not understood.
    pub fn change(server: &RedisServer, key: &str, change: impl FnOnce(&mut Self)) {
        let mut text = Self::of(server, key);
        change(&mut text);
        server.command(&["HSET", key, "lock", &text.write()]);
    }

    fn write(&self) -> String {
        let Self { flags, counter, expires, lease } = self;
        let lease = lease.as_ref().map(|LeaseText { holder, fence, since, end, label }| {
            format!(" {holder} {fence} {since} {end} {label}")
        });
        format!("{flags}{counter} {expires}{}", lease.unwrap_or_default())
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
        self.lease.as_ref().is_some_and(|lease| lease.holder == id.to_string())
    }
}
