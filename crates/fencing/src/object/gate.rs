use std::{sync::Arc, time::Duration};

use leasehold_core::{Clock, Entropy, SettingError, Stamp, SystemClock, SystemEntropy};
use object_store::{Attributes, ObjectStore, PutOptions, PutPayload, path::Path};

use super::{
    failure,
    metadata::{self, ObjectState},
};
use crate::{
    error::{GateError, NotShutOut, ResourceError},
    gate::{Admitted, FenceGate, GateFuture, Refusals, judge},
};

/// A gate that keeps watermarks in the metadata of the objects that they guard.
///
/// A resource is the path of an object. Its watermark is the metadata `leasehold`, with the value
/// `<fence> <lease>`; an object without it was never fenced. The gate reads the metadata (a
/// *look*), compares the stamps, and writes on the condition that the object has not changed since;
/// if it has, the gate looks again.
///
/// The condition is the object's ETag or version, which has to change with every write. **S3
/// without SSE-KMS, and most stores that are compatible with it, make ETags from the bytes alone.**
/// There, a holder that was paused between its look and its write can replace what others have
/// written, if the object has the old bytes again. Let the bytes differ with every lease, for
/// instance by its stamp, and set [`bytes_differ`](Self::bytes_differ). [`check`](Self::check)
/// tells which kind of store it is.
///
/// Use the same [`Path`] in [`put`](Self::put) and in [`advance`](Self::advance): `Path::from`
/// encodes a text and `Path::parse` does not, so one text can name two objects. A gate guards only
/// writes that go through it. Cloning is cheap.
#[derive(Debug, Clone)]
#[must_use = "a gate does nothing itself, write through it"]
pub struct ObjectGate {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) compares_versions: bool,
    pub(super) bytes_differ: bool,
    clock: Arc<dyn Clock>,
    refusals: Arc<Refusals>,
    max_attempts: u32,
    max_rewritten: u64,
}

/// What to write.
enum ObjectWrite {
    /// A new body, with attributes.
    Put(PutPayload, Attributes),
    /// The watermark alone.
    Advance,
}

impl ObjectGate {
    /// The longest path, in bytes: the limit of S3 and Google Cloud Storage.
    pub const MAX_PATH_BYTES: usize = 1024;

    /// Makes a gate on a store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            entropy: Arc::new(SystemEntropy),
            compares_versions: false,
            bytes_differ: false,
            clock: Arc::new(SystemClock),
            refusals: Arc::new(Refusals::new("object")),
            max_attempts: 16,
            max_rewritten: 16 * 1024 * 1024,
        }
    }

    /// Sets whether the store's conditional writes compare versions instead of ETags. Default: `false`.
    ///
    /// Google Cloud Storage does: its ETags may stay the same when versions change. On other stores
    /// an unchanged ETag is an error.
    pub fn compares_versions(self, compares: bool) -> Self {
        Self { compares_versions: compares, ..self }
    }

    /// Sets whether the caller lets the bytes of an object differ with every lease. Default: `false`.
    ///
    /// Then ETags that are made from the bytes alone are enough for [`put`](Self::put), which still
    /// fails if the ETag is unchanged, and pass [`check`](Self::check). They are not enough for
    /// [`advance`](Self::advance), which writes the same bytes.
    pub fn bytes_differ(self, differ: bool) -> Self {
        Self { bytes_differ: differ, ..self }
    }

    /// Sets how many attempts a write has if others change the object meanwhile, 1 to 100. Default: 16.
    ///
    /// The pauses between the attempts are random, at most a second each.
    ///
    /// # Errors
    ///
    /// [`SettingError`] for zero, and above 100.
    pub fn max_attempts(mut self, attempts: u32) -> Result<Self, SettingError> {
        self.max_attempts = SettingError::check("number of attempts", attempts, 1..=100)?;
        Ok(self)
    }

    /// Sets how many bytes an object may have for `advance` to write them again. Default: 16 MiB.
    pub fn max_rewritten(self, bytes: u64) -> Self {
        Self { max_rewritten: bytes, ..self }
    }

    /// Writes an object if the stamp is admitted, in one step with the comparison.
    ///
    /// The write replaces the object and its attributes. You may repeat it with the same stamp: it
    /// writes again or is refused, and undoes no write of another holder. Of two writes of one
    /// lease the later one wins, also if the first had no answer and arrives late; unless ETags are
    /// made from the bytes, and the object has the old bytes again.
    ///
    /// # Errors
    ///
    /// - [`GateError::Stale`] when another holder has been admitted; nothing was written.
    /// - [`GateError::Store`] when the store failed: `Definite` when nothing was written, also
    ///   because others changed the object during each attempt; `Indeterminate` when the write may
    ///   have happened; `Corrupt` when the watermark is not a valid stamp; `Config` when the store
    ///   cannot do conditional writes, or the ETag stayed the same.
    /// - [`GateError::Resource`] when the path is empty or too long; nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the write back: it may or may not happen.
    pub async fn put(
        &self,
        path: &Path,
        payload: impl Into<PutPayload>,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        self.put_with(path, payload, Attributes::new(), presented).await
    }

    /// Writes an object with attributes, such as its content type, if the stamp is admitted.
    ///
    /// The gate uses the metadata `leasehold` and `leaseholdplaceholder` itself, and removes them
    /// from the attributes, in upper or lower case, as headers ignore case.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the write back: it may or may not happen.
    pub async fn put_with(
        &self,
        path: &Path,
        payload: impl Into<PutPayload>,
        mut attributes: Attributes,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        metadata::unmark(&mut attributes);
        self.pass(path, &ObjectWrite::Put(payload.into(), attributes), presented).await
    }

    /// Shuts out the former holder, after a lease is taken and before its first write.
    ///
    /// Use the same path as for [`put`](Self::put). A store can change metadata only by a write, so
    /// the object is read and written once: it keeps its bytes and attributes, loses its tags, and
    /// its time is new. If there is none, an empty one is made, see
    /// [`is_placeholder`](Self::is_placeholder). A repeat with the same stamp writes nothing.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put). [`GateError::Store`] of kind `Config` also when the object is
    /// larger than [`max_rewritten`](Self::max_rewritten). [`GateError::NotShutOut`] when the store
    /// makes ETags from the bytes alone: the watermark has moved, but a holder that had looked
    /// already can still replace the object. On such a store use `put` only, for data that does not
    /// depend on earlier reads.
    ///
    /// # Cancel safety
    ///
    /// After a drop it is unknown whether the watermark has moved. The call may be repeated.
    pub async fn advance(&self, path: &Path, presented: Stamp) -> Result<Admitted, GateError> {
        self.pass(path, &ObjectWrite::Advance, presented).await
    }

    /// Returns whether an object is empty because `advance` made it before the first write.
    ///
    /// Readers have to treat such an object as missing.
    pub fn is_placeholder(attributes: &Attributes) -> bool {
        metadata::is_placeholder(attributes)
    }

    async fn pass(
        &self,
        path: &Path,
        write: &ObjectWrite,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        ResourceError::check_length(path.as_ref(), Self::MAX_PATH_BYTES)?;
        for attempt in 0..self.max_attempts {
            if attempt > 0 {
                self.pause(attempt - 1).await;
            }
            if let Some(admitted) = self.attempt(path, write, presented).await? {
                return Ok(admitted);
            }
        }
        Err(failure::contended(path, self.max_attempts).into())
    }

    /// Looks, compares, and writes if nothing has changed since; `None` if another write came
    /// between.
    async fn attempt(
        &self,
        path: &Path,
        write: &ObjectWrite,
        presented: Stamp,
    ) -> Result<Option<Admitted>, GateError> {
        let with_body = matches!(write, ObjectWrite::Advance);
        let mut seen = ObjectState::at(&*self.store, path, with_body).await?;
        let verdict = judge(seen.watermark, presented);
        let admitted = self.refusals.judged(verdict, path.as_ref(), presented)?;
        let (payload, mut attributes) = match write {
            ObjectWrite::Put(payload, attributes) => (payload.clone(), attributes.clone()),
            ObjectWrite::Advance if admitted == Admitted::Again => return Ok(Some(admitted)),
            ObjectWrite::Advance => self.same_again(path, &mut seen).await?,
        };
        metadata::set_watermark(&mut attributes, presented);
        let options = PutOptions { mode: seen.mode(), attributes, ..PutOptions::default() };
        match self.store.put_opts(path, payload, options).await {
            // For `Again`, the same bytes of the same lease may give the same ETag.
            Ok(put)
                if admitted != Admitted::Again
                    && !self.compares_versions
                    && seen.has_etag(put.e_tag.as_deref()) =>
            {
                Err(match write {
                    ObjectWrite::Put(..) => failure::same_etag(path).into(),
                    // Another look would not show that earlier holders are shut out: they compare
                    // ETags.
                    ObjectWrite::Advance => {
                        NotShutOut { presented, resource: path.as_ref().into() }.into()
                    }
                })
            }
            Ok(_) => Ok(Some(admitted)),
            Err(error) if failure::is_lost_race(&error, seen.is_there()) => Ok(None),
            Err(error) => Err(failure::of_write(&error, path).into()),
        }
    }

    /// The present body and attributes of an object, or those of a placeholder.
    async fn same_again(
        &self,
        path: &Path,
        seen: &mut ObjectState,
    ) -> Result<(PutPayload, Attributes), GateError> {
        let Some(object) = seen.object.take() else {
            let mut attributes = Attributes::new();
            metadata::mark_placeholder(&mut attributes);
            return Ok((PutPayload::new(), attributes));
        };
        let (size, attributes) = (object.meta.size, object.attributes.clone());
        if size > self.max_rewritten {
            return Err(failure::too_large(path, size, self.max_rewritten).into());
        }
        let bytes = object.bytes().await.map_err(|error| failure::of_look(&error, path))?;
        Ok((bytes.into(), attributes))
    }

    /// Waits for a random time; its upper limit doubles with each attempt, up to a second.
    async fn pause(&self, attempt: u32) {
        let most = Duration::from_millis(10 << attempt.min(7)).min(Duration::from_secs(1));
        let pause = most.mul_f64(self.entropy.fraction());
        self.clock.sleep_until(self.clock.now() + pause).await;
    }
}

/// A resource is the text of a path, spelled so that `Path::from` does not change it: ASCII
/// characters, without empty parts, a slash at either end, `.`, `..`, `%`, `~`, `{`, `#` and the
/// like. Any other text is refused with [`ResourceError::NotAPath`]: it could name another object
/// in the code that writes. `admit` and `advance` both do the same as [`ObjectGate::advance`].
impl FenceGate for ObjectGate {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(async move {
            // Only one spelling for one object: the HTTP layer keeps a lane for each text.
            let is_its_spelling =
                |path: &Path| path.as_ref() == resource && *path == Path::from(resource);
            let path = Path::parse(resource).ok().filter(is_its_spelling);
            let path = path.ok_or_else(|| ResourceError::NotAPath(resource.into()))?;
            self.pass(&path, &ObjectWrite::Advance, presented).await
        })
    }
}
