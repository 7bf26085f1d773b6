use leasehold_core::{Stamp, StoreError};
use object_store::{Error, GetOptions, GetResult, ObjectStore, PutMode, UpdateVersion, path::Path};

use super::{failure, metadata};

/// The state of a path when the gate looked.
#[derive(Debug)]
pub(super) struct Seen {
    /// The highest stamp that the object has seen.
    pub(super) watermark: Option<Stamp>,
    /// The version that a write may replace; `None` if there was no object.
    version: Option<UpdateVersion>,
    /// The object, with its body still to be read; `None` if only the metadata was asked for.
    pub(super) object: Option<GetResult>,
}

impl Seen {
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
        let watermark = metadata::watermark(&found.attributes)
            .map_err(|error| error.for_resource(path.as_ref()))?;
        let version =
            UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        if version.e_tag.is_none() && version.version.is_none() {
            return Err(failure::unversioned(path));
        }
        Ok(Self { watermark, version: Some(version), object: with_body.then_some(found) })
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
