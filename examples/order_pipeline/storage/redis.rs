use std::{collections::BTreeMap, time::Duration};

use leasehold::{RedisConfig, RedisPool, Stamp, fencing::RedisGate};
use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};

use super::{
    RUN, Storage, StorageError,
    call::Call,
    record::{json, parse, record},
    scripts::Scripts,
};
use crate::{
    article::Article,
    crew::Crew,
    failure::Failure,
    orders::OrderFile,
    shelf::{Booking, Record, Shelf},
    tally::Tally,
};

/// Shelves on a Redis server that copies of the program share, behind a gate in their scripts.
///
/// Every key ends an hour after its run began. Watermarks live an hour from their last admission,
/// so they outlive what they guard, and a writer would have to be paused for longer to slip by.
pub(crate) struct RedisStorage {
    reader: Client,
    scripts: Scripts,
    run: String,
    ends_at: String,
}

impl RedisStorage {
    const LIFE: Duration = Duration::from_secs(60 * 60);
    /// A run that is about to end is not worth joining.
    const WORTH_JOINING: Duration = Duration::from_secs(10 * 60);

    /// Joins the open run on a server, or begins one.
    pub(crate) async fn join(crew: &Crew, url: &str, file: &OrderFile) -> Result<Self, Failure> {
        let config = RedisConfig::new(url)?.client_name("order_pipeline").pool_size(16);
        let gate = RedisGate::new(RedisPool::new(&config)?).watermark_ttl(Self::LIFE)?;
        let scripts = Scripts::behind(&gate);
        let guard = crew.run_lock()?.acquire().await?;
        let stamp = guard.stamp();
        let millis = |time: Duration| time.as_millis().to_string();
        let (run, ends_at) = Call::of(&scripts.open, RUN, stamp)
            .arg(stamp.fence)
            .arg(file.fingerprint)
            .arg(millis(Self::LIFE))
            .arg(millis(Self::WORTH_JOINING))
            .answer()
            .await?;
        let storage = Self { reader: Client::open(url)?, scripts, run, ends_at };
        storage.tell(crew.copy(), String::new(), stamp).await?;
        guard.release().await?;
        Ok(storage)
    }

    async fn tell(&self, copy: &str, what: String, stamp: Stamp) -> Result<(), StorageError> {
        let call = Call::of(&self.scripts.tell, RUN, stamp).key(self.copies_key());
        call.arg(copy).arg(what).arg(&self.ends_at).done().await
    }

    fn copies_key(&self) -> String {
        format!("{RUN}:{}:copies", self.run)
    }

    fn shelf_key(&self, article: &Article) -> String {
        format!("order_pipeline:{{{}/{}}}", self.run, article.name)
    }

    /// What is only read needs no fence.
    async fn connection(&self) -> Result<MultiplexedConnection, StorageError> {
        let timeout = Some(Duration::from_secs(5));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(timeout)
            .set_response_timeout(timeout);
        Ok(self.reader.get_multiplexed_async_connection_with_config(&config).await?)
    }
}

impl Storage for RedisStorage {
    async fn look(&self, article: &Article, stamp: Stamp) -> Result<Shelf, StorageError> {
        let key = self.shelf_key(article);
        let (next, stock) = Call::of(&self.scripts.look, &key, stamp).answer().await?;
        Ok(Shelf { next, stock })
    }

    async fn book(
        &self,
        article: &Article,
        at: usize,
        booking: &Booking,
        stamp: Stamp,
    ) -> Result<(), StorageError> {
        let key = self.shelf_key(article);
        let call = Call::of(&self.scripts.book, &key, stamp).arg(at).arg(json(booking)?);
        call.arg(at + 1).arg(booking.stock).arg(&self.ends_at).done().await
    }

    async fn close(&self, stamp: Stamp) -> Result<(), StorageError> {
        Call::of(&self.scripts.close, RUN, stamp).arg(&self.run).done().await
    }

    async fn hand_in(&self, copy: &str, tally: &Tally, stamp: Stamp) -> Result<(), StorageError> {
        self.tell(copy, json(tally)?, stamp).await
    }

    async fn copies(&self) -> Result<BTreeMap<String, Option<Tally>>, StorageError> {
        let mut connection = self.connection().await?;
        let told: BTreeMap<String, String> =
            redis::cmd("HGETALL").arg(self.copies_key()).query_async(&mut connection).await?;
        let read = |what: String| (!what.is_empty()).then(|| parse(&what)).transpose();
        told.into_iter().map(|(copy, what)| Ok((copy, read(what)?))).collect()
    }

    async fn records(&self, articles: &[Article]) -> Result<Vec<Record>, StorageError> {
        let mut pipe = redis::pipe();
        for article in articles {
            pipe.cmd("HGETALL").arg(self.shelf_key(article));
        }
        let rows: Vec<BTreeMap<String, String>> =
            pipe.query_async(&mut self.connection().await?).await?;
        rows.iter().map(record).collect()
    }
}
