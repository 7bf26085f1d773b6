use std::borrow::Cow;

use leasehold_core::{Stamp, StoreError, StoreErrorKind};
use object_store::{Attribute, Attributes};

/// The key of the watermark: letters alone, which every store takes, and every proxy passes on.
pub(super) const WATERMARK: &str = "leasehold";

/// The key that marks an object which was made for its watermark alone.
const PLACEHOLDER: &str = "leaseholdplaceholder";

/// The watermark of an object, if it was ever fenced.
pub(super) fn watermark(attributes: &Attributes) -> Result<Option<Stamp>, StoreError> {
    let Some(value) = attributes.get(&key(WATERMARK)) else { return Ok(None) };
    value.parse().map(Some).map_err(|_| {
        let beginning: String = value.chars().take(80).collect();
        StoreError::new(
            StoreErrorKind::Corrupt,
            format!("its metadata {WATERMARK:?} holds {beginning:?}, which is not the stamp of a lease"),
            "find out who wrote it, then set it to the stamp of the last holder, or remove it while nobody writes",
        )
    })
}

/// Writes the watermark, in place of one that is there.
pub(super) fn set_watermark(attributes: &mut Attributes, stamp: Stamp) {
    attributes.insert(key(WATERMARK), stamp.to_string().into());
}

/// Marks an object as one that was made for its watermark alone.
pub(super) fn mark_placeholder(attributes: &mut Attributes) {
    attributes.insert(key(PLACEHOLDER), "1".into());
}

/// Takes from what a caller wants to write what only the gate may write.
pub(super) fn unmark(attributes: &mut Attributes) {
    attributes.remove(&key(WATERMARK));
    attributes.remove(&key(PLACEHOLDER));
}

/// Whether an object was made for its watermark alone.
pub(super) fn is_placeholder(attributes: &Attributes) -> bool {
    attributes.get(&key(PLACEHOLDER)).is_some()
}

fn key(name: &'static str) -> Attribute {
    Attribute::Metadata(Cow::Borrowed(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stamp;

    #[test]
    fn a_watermark_reads_back_and_the_last_one_counts() {
        let mut attributes = Attributes::new();
        assert_eq!(watermark(&attributes), Ok(None));
        set_watermark(&mut attributes, stamp(41, 1));
        set_watermark(&mut attributes, stamp(42, 2));
        assert_eq!(watermark(&attributes), Ok(Some(stamp(42, 2))));
        mark_placeholder(&mut attributes);
        assert!(is_placeholder(&attributes));
        unmark(&mut attributes);
        assert!(attributes.is_empty());
    }

    #[test]
    fn metadata_that_is_no_stamp_is_an_error_and_not_the_first_write() {
        for value in ["", "41", "x", "0 00000000-0000-0000-0000-000000000007:3"] {
            let attributes = Attributes::from_iter([(key(WATERMARK), value)]);
            let error = watermark(&attributes).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(error.to_string().contains("not the stamp of a lease"), "{error}");
        }
    }
}
