use leasehold_core::StoreError;
use object_store::{
    Attribute, Attributes, GetOptions, ObjectStoreExt, PutMode, PutOptions, PutResult,
    UpdateVersion, path::Path,
};

use super::{
    failure,
    gate::ObjectGate,
    metadata::{self, WATERMARK},
};

impl ObjectGate {
    /// Checks that the store can do what a gate needs, with an object of its own below `folder`.
    ///
    /// It creates an object, reads its metadata, replaces it under true and false conditions, with
    /// different and with equal bytes, and deletes it. Call this once, when the service starts.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] of kind `Config` names what the store lacks:
    ///
    /// - it keeps no metadata, or returns neither ETags nor versions;
    /// - it writes although the condition is false: no gate can use it;
    /// - its ETags are made from the bytes alone, and [`bytes_differ`](Self::bytes_differ) is not
    ///   set;
    /// - it compares ETags, although [`compares_versions`](Self::compares_versions) says otherwise.
    ///
    /// Errors of other kinds say nothing about what the store can do: try again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the object behind.
    // ADR 0042
    pub async fn check(&self, folder: &Path) -> Result<(), StoreError> {
        let path = folder.clone().join(format!("leasehold-{}", self.entropy.runtime_id()));
        let checked = Trials { gate: self, folder, path: &path }.run().await;
        if let Err(error) = self.store.delete(&path).await {
            // A store that failed is reported already; otherwise only an object is left behind.
            tracing::debug!(%path, %error, "the object that tried the store was not deleted");
        }
        checked
    }
}

/// The checks, one write after another. Bodies differ unless the check is about equal bodies.
struct Trials<'a> {
    gate: &'a ObjectGate,
    folder: &'a Path,
    path: &'a Path,
}

impl Trials<'_> {
    async fn run(&self) -> Result<(), StoreError> {
        self.write(1, PutMode::Create).await?;
        if self.is_taken(2, PutMode::Create).await? {
            return Err(failure::cannot(self.folder, "the store creates an object twice"));
        }

        let first = self.look().await?;
        self.write(3, PutMode::Update(first.clone())).await?;
        if self.is_taken(4, PutMode::Update(first)).await? {
            let what = "the store replaces an object that is no longer the one to replace";
            return Err(failure::cannot(self.folder, what));
        }

        let before = self.look().await?;
        self.write(3, PutMode::Update(before.clone())).await?;
        if self.is_taken(5, PutMode::Update(before)).await? {
            if self.gate.compares_versions {
                return Err(failure::compares_etags(self.folder));
            }
            if !self.gate.bytes_differ {
                return Err(failure::etags_of_bytes(self.folder));
            }
        }
        Ok(())
    }

    /// Writes the body with a number; the store has to accept the write.
    async fn write(&self, body: u32, mode: PutMode) -> Result<(), StoreError> {
        let written = self.try_write(body, mode).await;
        written.map(drop).map_err(|error| failure::of_write(&error, self.folder))
    }

    /// Whether the store accepts a write that it should refuse.
    async fn is_taken(&self, body: u32, mode: PutMode) -> Result<bool, StoreError> {
        match self.try_write(body, mode).await {
            Ok(_) => Ok(true),
            Err(error) if failure::is_lost_race(&error, true) => Ok(false),
            Err(error) => Err(failure::of_write(&error, self.folder)),
        }
    }

    async fn try_write(&self, body: u32, mode: PutMode) -> object_store::Result<PutResult> {
        let key = Attribute::Metadata(WATERMARK.into());
        let attributes = Attributes::from_iter([(key, "trial")]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let body = format!("{body}: written by Leasehold to try the store; may be deleted");
        self.gate.store.put_opts(self.path, body.into(), options).await
    }

    /// The version of the object; fails if its metadata is missing.
    async fn look(&self) -> Result<UpdateVersion, StoreError> {
        let look = self.gate.store.get_opts(self.path, GetOptions::new().with_head(true)).await;
        let found = look.map_err(|error| failure::of_look(&error, self.folder))?;
        if found.attributes.get(&Attribute::Metadata(WATERMARK.into())).is_none() {
            return Err(failure::cannot(self.folder, "the store keeps no metadata of an object"));
        }
        metadata::version(found.meta, self.folder)
    }
}
