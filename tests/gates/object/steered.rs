//! A store in memory that pauses, loses answers, or lacks what a gate needs.

use std::{
    collections::hash_map::DefaultHasher,
    fmt,
    hash::{Hash, Hasher},
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, memory::InMemory, path::Path,
};
use tokio::sync::Notify;

/// What kind of store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// It has all that a gate needs.
    #[default]
    Sound,
    /// Its ETags are made from the bytes alone, as those of S3 are.
    EtagsOfBytes,
    /// It forgets metadata.
    WithoutMetadata,
    /// It writes whatever the condition.
    WithoutConditions,
    /// It creates an object once, and replaces it whatever the condition.
    IgnoresIfMatch,
    /// The same, and its ETags are made from the bytes alone.
    IgnoresIfMatchEtagsOfBytes,
    /// It tells no ETags.
    WithoutVersions,
}

/// A store in memory that a test steers.
#[derive(Debug, Default)]
pub(crate) struct Steered {
    kind: Kind,
    inner: InMemory,
    one_at_a_time: tokio::sync::Mutex<()>,
    pause: Mutex<Option<Arc<Pause>>>,
    loses_next_answer: AtomicBool,
    always_first: AtomicBool,
    written: Mutex<Vec<Attributes>>,
    lost_races: AtomicUsize,
}

/// A write that has been decided upon and not yet sent.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    reached: Notify,
    over: Notify,
}

impl Pause {
    /// Waits until a write has come this far.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Lets the write go on.
    pub(crate) fn end(&self) {
        self.over.notify_one();
    }
}

impl Steered {
    pub(crate) fn of(kind: Kind) -> Arc<Self> {
        Arc::new(Self { kind, ..Self::default() })
    }

    pub(crate) fn sound() -> Arc<Self> {
        Self::of(Kind::Sound)
    }

    /// Pauses the next write before it is sent.
    pub(crate) fn pause_next(&self) -> Arc<Pause> {
        let pause = Arc::new(Pause::default());
        *self.pause.lock().unwrap() = Some(Arc::clone(&pause));
        pause
    }

    /// Carries the next write out, and answers with an error.
    pub(crate) fn lose_next_answer(&self) {
        self.loses_next_answer.store(true, Ordering::SeqCst);
    }

    /// Whether the answer that was to be lost has been lost.
    pub(crate) fn has_lost_answer(&self) -> bool {
        !self.loses_next_answer.load(Ordering::SeqCst)
    }

    /// From now on somebody else writes before every conditional write.
    pub(crate) fn be_contended(&self) {
        self.always_first.store(true, Ordering::SeqCst);
    }

    /// The attributes of every write, in the order in which they took effect.
    pub(crate) fn written(&self) -> Vec<Attributes> {
        self.written.lock().unwrap().clone()
    }

    /// How many conditional writes came too late.
    pub(crate) fn lost_races(&self) -> usize {
        self.lost_races.load(Ordering::SeqCst)
    }

    async fn etag_of_bytes(&self, path: &Path) -> Option<String> {
        let bytes = self.inner.get(path).await.ok()?.bytes().await.ok()?;
        Some(etag(&bytes))
    }

    /// Judges the condition by the bytes; the store beneath then only has to write.
    async fn judged_by_bytes(&self, path: &Path, options: &mut PutOptions) -> Result<()> {
        let PutMode::Update(expected) = &options.mode else { return Ok(()) };
        if self.etag_of_bytes(path).await != expected.e_tag {
            let (path, source) = (path.to_string(), "another ETag".into());
            return Err(Error::Precondition { path, source });
        }
        options.mode = PutMode::Overwrite;
        Ok(())
    }
}

impl fmt::Display for Steered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steered")
    }
}

fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:x}\"", hasher.finish())
}

#[async_trait]
impl ObjectStore for Steered {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        let pause = self.pause.lock().unwrap().take();
        if let Some(pause) = pause {
            pause.reached.notify_one();
            pause.over.notified().await;
        }
        // Others look before this one writes.
        tokio::task::yield_now().await;
        let _alone = self.one_at_a_time.lock().await;
        if self.always_first.load(Ordering::SeqCst) {
            self.inner.put(path, "somebody else's".into()).await?;
        }
        match self.kind {
            Kind::EtagsOfBytes => self.judged_by_bytes(path, &mut options).await?,
            Kind::IgnoresIfMatch | Kind::IgnoresIfMatchEtagsOfBytes => {
                if matches!(options.mode, PutMode::Update(_)) {
                    options.mode = PutMode::Overwrite;
                }
            }
            Kind::WithoutConditions => options.mode = PutMode::Overwrite,
            Kind::WithoutMetadata => drop(mem::take(&mut options.attributes)),
            Kind::Sound | Kind::WithoutVersions => {}
        }
        let attributes = options.attributes.clone();
        let mut put = match self.inner.put_opts(path, payload, options).await {
            Err(error @ (Error::Precondition { .. } | Error::AlreadyExists { .. })) => {
                self.lost_races.fetch_add(1, Ordering::SeqCst);
                return Err(error);
            }
            other => other?,
        };
        self.written.lock().unwrap().push(attributes);
        match self.kind {
            Kind::EtagsOfBytes | Kind::IgnoresIfMatchEtagsOfBytes => {
                put.e_tag = self.etag_of_bytes(path).await;
            }
            Kind::WithoutVersions => put.e_tag = None,
            _ => {}
        }
        if self.loses_next_answer.swap(false, Ordering::SeqCst) {
            return Err(Error::Generic { store: "Steered", source: "the answer was lost".into() });
        }
        Ok(put)
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let _alone = self.one_at_a_time.lock().await;
        let mut found = self.inner.get_opts(path, options).await?;
        match self.kind {
            Kind::EtagsOfBytes | Kind::IgnoresIfMatchEtagsOfBytes => {
                found.meta.e_tag = self.etag_of_bytes(path).await;
            }
            Kind::WithoutVersions => found.meta.e_tag = None,
            _ => {}
        }
        Ok(found)
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
