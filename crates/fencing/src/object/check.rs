use leasehold_core::StoreError;
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    PutResult, UpdateVersion, path::Path,
};

use super::{failure, gate::ObjectGate, metadata::WATERMARK};

const BODY: &str = "written by Leasehold to try the store; may be deleted";

impl ObjectGate {
    /// Tries whether the store has what a gate rests on, with an object of its own below `folder`.
    ///
    /// It creates one, reads its metadata, replaces it on conditions that hold and on others that
    /// do not, and deletes it. Do so once, when the service starts.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] of kind `Config` names what the store lacks: metadata, conditional writes, or
    /// ETags that change with every write. Those of other kinds say nothing about the store.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the object behind.
    pub async fn check(&self, folder: &Path) -> Result<(), StoreError> {
        let path = folder.clone().join(format!("leasehold-{}", self.entropy.runtime_id()));
        let checked = self.try_out(&path).await;
        if let Err(error) = self.store.delete(&path).await {
            // Already said by what was tried, or only untidy.
            tracing::debug!(%path, %error, "the object that tried the store was not deleted");
        }
        checked.map_err(|error| error.for_resource(folder.as_ref()))
    }

    async fn try_out(&self, path: &Path) -> Result<(), StoreError> {
        let failed = |error: Error| failure::of_write(&error, path);
        let created = self.try_write(path, PutMode::Create).await.map_err(failed)?;
        must_be_refused(
            self.try_write(path, PutMode::Create).await,
            path,
            "creates an object twice",
        )?;

        let look = self.store.get_opts(path, GetOptions::new().with_head(true)).await;
        let found = look.map_err(|error| failure::of_look(&error, path))?;
        if found.attributes.get(&Attribute::Metadata(WATERMARK.into())).is_none() {
            return Err(failure::cannot("the store keeps no metadata of an object"));
        }
        let first = UpdateVersion { e_tag: found.meta.e_tag, version: found.meta.version };
        if first.e_tag.is_none() && first.version.is_none() {
            return Err(failure::unversioned(path));
        }
        let replaced =
            self.try_write(path, PutMode::Update(first.clone())).await.map_err(failed)?;
        let told = created.e_tag.is_some();
        if told && !self.compares_versions && replaced.e_tag == created.e_tag {
            return Err(failure::same_etag(path));
        }
        let late = self.try_write(path, PutMode::Update(first)).await;
        must_be_refused(late, path, "replaces an object that is no longer the one to replace")
    }

    async fn try_write(&self, path: &Path, mode: PutMode) -> object_store::Result<PutResult> {
        let key = Attribute::Metadata(WATERMARK.into());
        let attributes = Attributes::from_iter([(key, "trial")]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        self.store.put_opts(path, PutPayload::from_static(BODY.as_bytes()), options).await
    }
}

fn must_be_refused(
    written: object_store::Result<PutResult>,
    path: &Path,
    what: &str,
) -> Result<(), StoreError> {
    match written {
        Ok(_) => Err(failure::cannot(format!("the store {what}"))),
        Err(error) if failure::is_lost_race(&error, true) => Ok(()),
        Err(error) => Err(failure::of_write(&error, path)),
    }
}
