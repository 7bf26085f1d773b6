//! The kinds of writes, each without its gate and through it.

mod http;
mod memory;
mod object;
mod postgres;
mod redis;

use leasehold_testkit::{PostgresServer, RedisServer};

use crate::{Failure, round::Write};

/// One kind of write.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) plain: Write,
    pub(crate) gated: Write,
}

/// All kinds of writes, and the servers that they need.
pub(crate) struct Bench {
    pub(crate) subjects: Vec<Subject>,
    _redis: RedisServer,
    _postgres: PostgresServer,
}

/// Starts the servers, and prepares what is written to.
pub(crate) async fn start() -> Result<Bench, Failure> {
    let redis = RedisServer::builder().tcp().start();
    let postgres = PostgresServer::builder().tcp().start();
    let mut subjects = vec![memory::subject()];
    subjects.extend(redis::subjects(&redis.url())?);
    subjects.extend(postgres::subjects(&postgres.url()).await?);
    subjects.push(object::subject());
    subjects.push(http::subject().await?);
    Ok(Bench { subjects, _redis: redis, _postgres: postgres })
}
