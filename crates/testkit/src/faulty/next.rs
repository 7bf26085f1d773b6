use leasehold_core::{
    AcquisitionId, FenceToken, RuntimeLabel, Ttl,
    store::{Heartbeat, Next},
};

/// A [`Next`] that owns its words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `leasehold_core::store::Next`")]
pub struct OwnedNext {
    pub id: AcquisitionId,
    pub ttl: Ttl,
    pub watermark: Option<FenceToken>,
    pub label: RuntimeLabel,
    pub keeps: bool,
    pub heartbeat: Heartbeat,
}

impl OwnedNext {
    /// The words as a command takes them.
    pub fn borrowed(&self) -> Next<'_> {
        let Self { id, ttl, watermark, ref label, keeps, heartbeat } = *self;
        Next { id, ttl, watermark, label, keeps, heartbeat }
    }
}

impl From<Next<'_>> for OwnedNext {
    fn from(next: Next<'_>) -> Self {
        let Next { id, ttl, watermark, label, keeps, heartbeat } = next;
        Self { id, ttl, watermark, label: label.clone(), keeps, heartbeat }
    }
}
