use std::{borrow::Cow, collections::BTreeSet};

use leasehold_core::{Stamp, StoreError, StoreErrorKind};
use object_store::{
    Attribute, AttributeValue, Attributes, Error, GetOptions, GetResult, ObjectMeta, ObjectStore,
    PutMode, UpdateVersion, path::Path,
};

use super::failure;

/// The state of a path when the gate looked.
#[derive(Debug)]
pub(super) struct ObjectState {
    /// The highest stamp that the object has seen.
    pub(super) watermark: Option<Stamp>,
    /// The version that a write may replace; `None` if there was no object.
    version: Option<UpdateVersion>,
    /// The object, with its body still to be read; `None` if only the metadata was asked for.
    pub(super) object: Option<GetResult>,
}

impl ObjectState {
    /// Whether there was an object.
    pub(super) fn is_there(&self) -> bool {
        self.version.is_some()
    }

    /// Reads the metadata of an object, and also opens its body if `with_body` is set.
    pub(super) async fn at(
        store: &dyn ObjectStore,
        path: &Path,
        with_body: bool,
    ) -> Result<Self, StoreError> {
        let options = GetOptions::new().with_head(!with_body);
        let found = match store.get_opts(path, options).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => {
                return Ok(Self { watermark: None, version: None, object: None });
            }
            Err(error) => return Err(failure::of_look(&error, path)),
        };
        let watermark =
            watermark(&found.attributes).map_err(|error| error.for_resource(path.as_ref()))?;
        let version = Some(version(found.meta.clone(), path)?);
        Ok(Self { watermark, version, object: with_body.then_some(found) })
    }

    /// The mode of a write that takes effect only if nothing has changed since the look.
    pub(super) fn mode(&self) -> PutMode {
        self.version.clone().map_or(PutMode::Create, PutMode::Update)
    }

    /// Whether an ETag is the same as at the look.
    pub(super) fn has_etag(&self, e_tag: Option<&str>) -> bool {
        let seen = self.version.as_ref().and_then(|version| version.e_tag.as_deref());
        seen.is_some() && seen == e_tag
    }
}

/// The version that a conditional write can name; fails if the store tells none.
pub(super) fn version(meta: ObjectMeta, path: &Path) -> Result<UpdateVersion, StoreError> {
    let ObjectMeta { e_tag, version, .. } = meta;
    if e_tag.is_none() && version.is_none() {
        let what = "the store tells neither an ETag nor a version of the object";
        return Err(failure::cannot(path, what));
    }
    Ok(UpdateVersion { e_tag, version })
}

/// The key of the watermark: letters only, which every store accepts, and every proxy passes on.
// ADR 0042
pub(super) const WATERMARK: &str = "leasehold";

/// The key that marks an object which `advance` made only for its watermark.
const PLACEHOLDER: &str = "leaseholdplaceholder";

/// The watermark of an object, if it was ever fenced.
pub(super) fn watermark(attributes: &Attributes) -> Result<Option<Stamp>, StoreError> {
    // Sorted, because the map has no order. Several different values are not a stamp.
    let values: BTreeSet<&str> =
        of(attributes, WATERMARK).map(|(_, value)| value.as_ref()).collect();
    if values.is_empty() {
        return Ok(None);
    }
    let value = Vec::from_iter(values).join(",");
    value.parse().map(Some).map_err(|_| {
        let beginning: String = value.chars().take(80).collect();
        StoreError::new(
            StoreErrorKind::Corrupt,
            format!("its metadata {WATERMARK:?} holds {beginning:?}, which is not the stamp of a lease"),
            "find out who wrote it, then set it to the stamp of the last holder, or remove it while nobody writes",
        )
    })
}

/// Writes the watermark, and replaces an earlier one.
pub(super) fn set_watermark(attributes: &mut Attributes, stamp: Stamp) {
    remove(attributes, WATERMARK);
    attributes.insert(key(WATERMARK), stamp.to_string().into());
}

/// Marks an object as one that was made only for its watermark.
pub(super) fn mark_placeholder(attributes: &mut Attributes) {
    attributes.insert(key(PLACEHOLDER), "1".into());
}

/// Removes the keys that only the gate may write.
pub(super) fn unmark(attributes: &mut Attributes) {
    remove(attributes, WATERMARK);
    remove(attributes, PLACEHOLDER);
}

/// Whether an object was made only for its watermark.
pub(super) fn is_placeholder(attributes: &Attributes) -> bool {
    of(attributes, PLACEHOLDER).next().is_some()
}

/// The metadata with a name, in upper or lower case: S3 and others keep it in headers.
fn of<'a>(
    attributes: &'a Attributes,
    name: &'static str,
) -> impl Iterator<Item = (&'a Attribute, &'a AttributeValue)> {
    attributes.iter().filter(
        move |(key, _)| matches!(key, Attribute::Metadata(key) if key.eq_ignore_ascii_case(name)),
    )
}

fn remove(attributes: &mut Attributes, name: &'static str) {
    let keys: Vec<Attribute> = of(attributes, name).map(|(key, _)| key.clone()).collect();
    for key in keys {
        attributes.remove(&key);
    }
}

fn key(name: &'static str) -> Attribute {
    Attribute::Metadata(Cow::Borrowed(name))
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

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
    fn letters_make_no_other_name() {
        for name in ["Leasehold", "LEASEHOLD", "leaseHold"] {
            let mut attributes = Attributes::from_iter([(key(name), stamp(41, 1).to_string())]);
            assert_eq!(watermark(&attributes), Ok(Some(stamp(41, 1))), "{name}");
            set_watermark(&mut attributes, stamp(42, 2));
            assert_eq!(attributes.len(), 1, "{name}");
            assert_eq!(watermark(&attributes), Ok(Some(stamp(42, 2))), "{name}");
            attributes.insert(key("leaseholdPLACEHOLDER"), "1".into());
            assert!(is_placeholder(&attributes));
            unmark(&mut attributes);
            assert!(attributes.is_empty(), "{name}");
        }
    }

    #[test]
    fn two_watermarks_are_an_error_unless_they_are_equal() {
        let both = |other: u64| {
            let (one, other) = (stamp(42, 2).to_string(), stamp(other, 2).to_string());
            Attributes::from_iter([(key("leasehold"), one), (key("Leasehold"), other)])
        };
        assert_eq!(watermark(&both(42)), Ok(Some(stamp(42, 2))));
        assert_eq!(watermark(&both(41)).unwrap_err().kind(), StoreErrorKind::Corrupt);
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

    proptest! {
        #![proptest_config(crate::gate::fuzzed())]

        #[test]
        fn all_metadata_is_read(given in vec((select(&["leasehold", "Leasehold", "x"][..]), ".{0,300}|[0-9]{0,20} ?[0-9a-f:-]{0,60}"), 0..4)) {
            let attributes: Attributes =
                given.into_iter().map(|(name, value)| (key(name), value)).collect();
            is_placeholder(&attributes);
            match watermark(&attributes) {
                Ok(Some(stamp)) => {
                    for (_, text) in of(&attributes, WATERMARK) {
                        let text: &str = text.as_ref();
                        prop_assert_eq!(text, stamp.to_string());
                    }
                }
                Ok(None) => prop_assert_eq!(of(&attributes, WATERMARK).count(), 0),
                Err(error) => prop_assert!(error.to_string().chars().count() < 2_000, "{error}"),
            }
        }
    }
}
